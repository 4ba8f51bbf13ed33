// Package engine runs language models from GGUF packs: it is the door to
// everything below it.
//
// The path of one token: [OpenPack] reads the headers of a pack; [Load] turns
// its metadata into a specification (spec.go, one small file per family) and
// binds every tensor to a field, checking each shape (bind.go); a [Session]
// holds the memory of one timeline (kv.go, state.go) and decides what of a
// prompt it can reuse; forward (forward.go) runs T tokens through the layers,
// whether they are a piece of prompt, the next token or drafts to verify; the
// sampler draws from the logits; the text goes out when it is sure that no
// stop string begins in it.
//
// Who owns what: a Model is read-only after Load and may be shared by
// sessions, but its workers serve one forward pass at a time. A Session
// belongs to one goroutine. Telemetry may be read from any.
//
// What is refused: unknown families (by name), tensors of the wrong shape,
// prompts longer than the context, logits that are not finite, and answers
// that repeat one token without end. Nothing is cut silently.
package engine
