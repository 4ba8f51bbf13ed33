package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"outcrop/engine/gguf"
)

// Source is something to download: the files of one pack.
type Source struct {
	Name   string       `json:"name"`   // folder, and name in the list
	Origin string       `json:"origin"` // what the user asked for
	Files  []RemoteFile `json:"files"`
}

// RemoteFile is one file of a source.
type RemoteFile struct {
	URL    string `json:"url"`
	Name   string `json:"name"`
	Size   int64  `json:"size"`             // -1: unknown until the server says
	SHA256 string `json:"sha256,omitempty"` // "" when the site gives none
}

// Size is the sum of all files, -1 when one is unknown.
func (s Source) Size() (n int64) {
	for _, f := range s.Files {
		if f.Size < 0 {
			return -1
		}
		n += f.Size
	}
	return n
}

// Option is one pack of a repository that holds several.
type Option struct {
	Ref   string `json:"ref"` // what Find takes to get exactly this one
	Bytes int64  `json:"bytes"`
	Files int    `json:"files"`
}

// ChoiceError says that a repository holds several packs and the reference
// did not name one.
type ChoiceError struct {
	Repo    string
	Options []Option
}

func (e *ChoiceError) Error() string {
	var s []string
	for _, o := range e.Options {
		s = append(s, fmt.Sprintf("%s (%.1f GB)", o.Ref, float64(o.Bytes)/1e9))
	}
	return fmt.Sprintf("%s holds %d packs; name one: %s", e.Repo, len(e.Options), strings.Join(s, ", "))
}

var repoRef = regexp.MustCompile(`^([\w][\w.-]*)/([\w][\w.-]*)(?::([\w.-]+)|/(.+\.gguf))?$`)

// Find turns what a person pastes into a Source: the address of a GGUF file,
// the address of a page of the site, owner/name, owner/name:TAG (a part of
// the file's name, such as Q4_K_M) or owner/name/FILE. Of a split pack all
// shards are taken.
func (d *Downloader) Find(ctx context.Context, ref string) (Source, error) {
	s, err := d.find(ctx, strings.TrimSpace(ref))
	var c *ChoiceError
	if k, ok := suggested(strings.TrimSpace(ref)); ok && err != nil && !errors.As(err, &c) && ctx.Err() == nil && errors.Is(err, errNotThere) {
		return s, fmt.Errorf("%w. It was there when this version was made; look for \"%s GGUF\" on %s and paste what you find", err, k.Name, d.site())
	}
	return s, err
}

// errNotThere is a repository or a file that the site does not have, or does
// not show to everybody.
var errNotThere = errors.New("")

func (d *Downloader) find(ctx context.Context, ref string) (Source, error) {
	if strings.HasPrefix(ref, "http://") || strings.HasPrefix(ref, "https://") {
		u, err := url.Parse(ref)
		if err != nil || u.Host == "" {
			return Source{}, fmt.Errorf("address %q: not a valid address", ref)
		}
		site, _ := url.Parse(d.site())
		page := site != nil && u.Host == site.Host && (strings.Contains(u.Path, "/blob/") || !strings.EqualFold(path.Ext(u.Path), ".gguf"))
		if !page {
			return fromURL(u, ref)
		}
		// A page of the site: owner/name, owner/name/tree/main, owner/name/blob/main/FILE.
		p := strings.Split(strings.Trim(u.Path, "/"), "/")
		switch {
		case len(p) >= 5 && p[2] == "blob":
			ref = p[0] + "/" + p[1] + "/" + strings.Join(p[4:], "/")
		case len(p) >= 2:
			ref = p[0] + "/" + p[1]
		default:
			return Source{}, fmt.Errorf("address %q: names no pack; paste owner/name or the address of a GGUF file", ref)
		}
	}
	m := repoRef.FindStringSubmatch(ref)
	if m == nil {
		return Source{}, fmt.Errorf("%q is no address and not of the form owner/name, owner/name:Q4_K_M or owner/name/FILE.gguf", ref)
	}
	repo, tag, file := m[1]+"/"+m[2], m[3], m[4]
	list, err := d.tree(ctx, repo)
	if err != nil {
		return Source{}, err
	}
	groups := group(list)
	if file != "" {
		groups = slices.DeleteFunc(groups, func(g []treeEntry) bool {
			return !slices.ContainsFunc(g, func(t treeEntry) bool { return t.Path == file })
		})
	} else if tag != "" {
		groups = slices.DeleteFunc(groups, func(g []treeEntry) bool { return !hasTag(g[0].Path, tag) })
	}
	switch {
	case len(groups) == 0 && len(list) == 0:
		return Source{}, fmt.Errorf("%s holds no GGUF file; look for a repository whose name ends in GGUF%w", repo, errNotThere)
	case len(groups) == 0:
		return Source{}, fmt.Errorf("%s holds no file for %q; it has: %s%w", repo, tag+file, strings.Join(paths(list), ", "), errNotThere)
	case len(groups) > 1:
		return Source{}, choice(repo, groups)
	}
	g := groups[0]
	s := Source{Name: packName(g[0].Path), Origin: ref}
	if prefix, _, count, ok := gguf.ShardName(g[0].Path); ok && count != len(g) {
		return Source{}, fmt.Errorf("%s: %s has %d of %d parts there; it cannot be complete", repo, path.Base(prefix), len(g), count)
	}
	for _, t := range g {
		name, err := safeName(path.Base(t.Path))
		if err != nil {
			return Source{}, fmt.Errorf("%s: %w", repo, err)
		}
		s.Files = append(s.Files, RemoteFile{URL: d.site() + "/" + repo + "/resolve/main/" + escape(t.Path), Name: name, Size: t.Size, SHA256: t.LFS.OID})
	}
	return s, nil
}

// treeEntry is one file of the site's listing. The digest is the oid of its
// large-file record.
type treeEntry struct {
	Type string `json:"type"`
	Path string `json:"path"`
	Size int64  `json:"size"`
	LFS  struct {
		OID  string `json:"oid"`
		Size int64  `json:"size"`
	} `json:"lfs"`
}

var nextLink = regexp.MustCompile(`<([^>]+)>;\s*rel="next"`)

// tree lists the GGUF files of a repository, without picture encoders.
func (d *Downloader) tree(ctx context.Context, repo string) ([]treeEntry, error) {
	next := d.site() + "/api/models/" + repo + "/tree/main?recursive=true"
	var out []treeEntry
	for range 20 {
		resp, err := d.get(ctx, next, nil)
		if err != nil {
			return nil, fmt.Errorf("look up %s: %w", repo, err)
		}
		b, err := io.ReadAll(io.LimitReader(resp.Body, 32<<20))
		resp.Body.Close()
		if err != nil {
			return nil, fmt.Errorf("look up %s: %w", repo, err)
		}
		if resp.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("look up %s: %w", repo, httpError(resp, repo))
		}
		var page []treeEntry
		if err := json.Unmarshal(b, &page); err != nil {
			return nil, fmt.Errorf("look up %s: the site's answer is not the expected list: %w", repo, err)
		}
		for _, t := range page {
			if t.Type == "file" && strings.EqualFold(path.Ext(t.Path), ".gguf") && !strings.HasPrefix(strings.ToLower(path.Base(t.Path)), "mmproj") {
				if t.LFS.Size > 0 {
					t.Size = t.LFS.Size
				}
				out = append(out, t)
			}
		}
		m := nextLink.FindStringSubmatch(resp.Header.Get("Link"))
		if m == nil {
			return out, nil
		}
		next = m[1]
	}
	return nil, errors.New("look up " + repo + ": the listing has no end")
}

// group puts the shards of one pack together, in their order.
func group(list []treeEntry) (groups [][]treeEntry) {
	at := map[string]int{}
	slices.SortFunc(list, func(a, b treeEntry) int { return strings.Compare(a.Path, b.Path) })
	for _, t := range list {
		if prefix, _, _, ok := gguf.ShardName(t.Path); ok {
			if i, seen := at[prefix]; seen {
				groups[i] = append(groups[i], t)
				continue
			}
			at[prefix] = len(groups)
		}
		groups = append(groups, []treeEntry{t})
	}
	return groups
}

// hasTag reports whether a file's name contains the tag as a whole word, so
// that Q4_K does not find Q4_K_M.
func hasTag(file, tag string) bool {
	name := strings.ToLower(packName(file))
	tag = strings.ToLower(tag)
	for i := 0; ; {
		j := strings.Index(name[i:], tag)
		if j < 0 {
			return false
		}
		j += i
		end := j + len(tag)
		if (j == 0 || strings.ContainsRune("-._", rune(name[j-1]))) && (end == len(name) || name[end] == '-' || name[end] == '.') {
			return true
		}
		i = j + 1
	}
}

func choice(repo string, groups [][]treeEntry) error {
	e := &ChoiceError{Repo: repo}
	for _, g := range groups {
		o := Option{Ref: repo + "/" + g[0].Path, Files: len(g)}
		for _, t := range g {
			o.Bytes += t.Size
		}
		e.Options = append(e.Options, o)
	}
	slices.SortStableFunc(e.Options, func(a, b Option) int { return int(min(max(a.Bytes-b.Bytes, -1), 1)) })
	return e
}

// fromURL makes a source of the address of a file. The address of one shard
// stands for all of them.
func fromURL(u *url.URL, ref string) (Source, error) {
	name, err := safeName(path.Base(u.Path))
	if err != nil {
		return Source{}, fmt.Errorf("address %q: %w", ref, err)
	}
	if !strings.EqualFold(path.Ext(name), ".gguf") {
		return Source{}, fmt.Errorf("address %q: does not end in .gguf; paste the address of the file itself", ref)
	}
	s := Source{Name: packName(name), Origin: ref}
	prefix, _, count, ok := gguf.ShardName(name)
	if !ok {
		s.Files = []RemoteFile{{URL: u.String(), Name: name, Size: -1}}
		return s, nil
	}
	if count > 1000 {
		return Source{}, fmt.Errorf("address %q: a pack of %d parts is not plausible", ref, count)
	}
	for i := 1; i <= count; i++ {
		n := fmt.Sprintf("%s-%05d-of-%05d.gguf", prefix, i, count)
		part := *u
		part.Path = path.Join(path.Dir(u.Path), n)
		part.RawPath = ""
		s.Files = append(s.Files, RemoteFile{URL: part.String(), Name: n, Size: -1})
	}
	return s, nil
}

// packName is the name of a pack by its file: without folder, shard number and
// ending.
func packName(file string) string {
	name := path.Base(filepath.ToSlash(file))
	if prefix, _, _, ok := gguf.ShardName(name); ok {
		return path.Base(filepath.ToSlash(prefix))
	}
	return strings.TrimSuffix(name, path.Ext(name))
}

// safeName accepts the last part of an address as a file name on any system.
func safeName(name string) (string, error) {
	bad := name == "" || name == "." || name == ".." || name == "/" || len(name) > 200 ||
		strings.ContainsAny(name, `/\:*?"<>|`) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) ||
		strings.HasSuffix(name, ".") || strings.HasSuffix(name, " ") || strings.HasPrefix(name, " ") || strings.HasPrefix(name, "-")
	if bad {
		return "", fmt.Errorf("%q cannot be the name of a file", name)
	}
	return name, nil
}

func escape(p string) string {
	parts := strings.Split(p, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.Join(parts, "/")
}

func paths(list []treeEntry) (out []string) {
	for _, t := range list {
		out = append(out, t.Path)
	}
	return out
}
