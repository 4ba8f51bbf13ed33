package serve

import (
	"net/http"

	"outcrop/engine/token"
	"outcrop/engine/wire"
)

func (s *Server) models(w http.ResponseWriter, r *http.Request) {
	b, err := s.ready()
	if err != nil {
		writeError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, wire.ModelList{Object: "list", Data: []wire.Model{b.model()}})
}

func (s *Server) model(w http.ResponseWriter, r *http.Request) {
	b, err := s.ready()
	if err == nil {
		err = checkModel(b, r.PathValue("id"))
	}
	if err != nil {
		writeError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, b.model())
}

func (b *Backend) model() wire.Model {
	info := b.Info
	return wire.Model{ID: b.Name, Object: "model", Created: b.Loaded.Unix(), OwnedBy: "outcrop", Outcrop: &info}
}

func (s *Server) tokenize(w http.ResponseWriter, r *http.Request) {
	b, err := s.ready()
	if err != nil {
		writeError(w, err)
		return
	}
	var in wire.TokenizeRequest
	if err := decode(w, r, &in); err != nil {
		writeError(w, err)
		return
	}
	out := wire.TokenizeResponse{Tokens: []int32{}}
	for _, id := range b.Tokenizer.Encode(in.Content, token.Options{Special: in.ParseSpecial, AddBOS: in.AddSpecial}) {
		out.Tokens = append(out.Tokens, int32(id))
		if in.WithPieces {
			out.Pieces = append(out.Pieces, string(b.Tokenizer.Piece(id)))
		}
	}
	writeJSON(w, http.StatusOK, out)
}

func (s *Server) detokenize(w http.ResponseWriter, r *http.Request) {
	b, err := s.ready()
	if err != nil {
		writeError(w, err)
		return
	}
	var in wire.DetokenizeRequest
	if err := decode(w, r, &in); err != nil {
		writeError(w, err)
		return
	}
	ids := make([]token.ID, len(in.Tokens))
	for i, id := range in.Tokens {
		if id < 0 || int(id) >= b.Tokenizer.Len() {
			writeError(w, bad("tokens", "token %d is %d, the vocabulary has %d", i, id, b.Tokenizer.Len()))
			return
		}
		ids[i] = token.ID(id)
	}
	writeJSON(w, http.StatusOK, wire.DetokenizeResponse{Content: string(b.Tokenizer.Decode(ids, in.Special))})
}
