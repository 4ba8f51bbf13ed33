// The function of a feed-forward's gate.

FN float activate(int act, float g, float u) {
  if (act == 1) { // tanh approximation of GELU
    float t = 0.7978845608028654f * g * (1.0f + 0.044715f * g * g);
    return 0.5f * g * (1.0f + tanh(t)) * u;
  }
  if (act == 2) { // gpt-oss
    g = fmin(g, 7.0f);
    u = fmax(fmin(u, 7.0f), -7.0f);
    return g / (1.0f + exp(-1.702f * g)) * (u + 1.0f);
  }
  return g / (1.0f + exp(-g)) * u; // SiLU
}
