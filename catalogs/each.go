// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"sync"

	"github.com/bellwether-dev/bellwether/bundles/registryv1"
)

// ReadGraphs reads every package, sorted by name, without the manifests of its bundles. Its memory is bounded by the
// graphs and the largest documents.
func ReadGraphs(files Files) ([]*Package, error) {
	return ReadEach(files, func(string, *Bundle) error { return nil })
}

// ReadEach is ReadGraphs, but hands out each bundle once with all its content, while it reads. take is called from
// several goroutines at a time and in any order, and must not keep the bundle; it gets the package's name. An error of
// take ends the reading and is returned as it is.
func ReadEach(files Files, take func(pkg string, b *Bundle) error) ([]*Package, error) {
	r, err := readDrafts(files, take)
	if err != nil {
		return nil, err
	}
	out := make([]*Package, 0, len(r.drafts))
	for _, name := range slices.Sorted(maps.Keys(r.drafts)) {
		p, err := r.assemble(name)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// ReadGraphsToImport is ReadPackageToImport for all packages, sorted by name. One invalid package does not spoil the
// others: its error is in the map, by the name of the package.
func ReadGraphsToImport(files Files) ([]*Package, map[string]error, error) {
	r, err := readDrafts(files, func(string, *Bundle) error { return nil })
	if err != nil {
		return nil, nil, err
	}
	r.join = true
	var out []*Package
	problems := map[string]error{}
	for _, name := range slices.Sorted(maps.Keys(r.drafts)) {
		p, err := r.assemble(name)
		if err != nil {
			problems[name] = err
			continue
		}
		out = append(out, p)
	}
	return out, problems, nil
}

// readDrafts reads all documents.
func readDrafts(files Files, take func(pkg string, b *Bundle) error) (*eachReader, error) {
	r := &eachReader{reader: newReader(DefaultBudget, func(string) bool { return true }), take: take,
		jobs: make(chan job)}
	if err := r.readEach(files); err != nil {
		return nil, err
	}
	return r, nil
}

// ReadEachOf is ReadEach for one package; nothing of the others is kept.
func ReadEachOf(files Files, name string, take func(b *Bundle) error) (*Package, error) {
	r := &eachReader{reader: newReader(DefaultBudget, func(pkg string) bool { return pkg == name }),
		jobs: make(chan job), take: func(_ string, b *Bundle) error { return take(b) }}
	r.skip = isBundleOfOthers([]string{name})
	if err := r.readEach(files); err != nil {
		return nil, err
	}
	return r.assemble(name)
}

// readEach reads all files, and has several workers parse their documents.
func (r *eachReader) readEach(files Files) error {
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(r.work)
	}
	err := files(r.split)
	close(r.jobs)
	workers.Wait()
	// What made the reading end is the error of a job, if there is one.
	if r.err != nil {
		return r.err
	}
	if err != nil {
		return err
	}
	return r.complete()
}

// job is a document that was read from a file and is to be parsed.
type job struct {
	seq  int // among all documents of all files
	file string
	n    int // within the file, from 1
	line int // on which it begins, from 1
	doc  []byte
}

type eachReader struct {
	*reader
	take func(pkg string, b *Bundle) error
	jobs chan job
	// met are all documents, sent those that are parsed.
	met, sent int
	// pending are jobs that were sent and are not done.
	pending sync.WaitGroup

	mu     sync.Mutex
	err    error
	failed int // the job that err comes from
}

// errStopped ends the cutting of files after an error elsewhere.
var errStopped = errors.New("reading stopped")

// split returns when all documents of a file are parsed: what parsing does must be seen as part of reading the file.
func (r *eachReader) split(name string, content io.Reader) error {
	defer r.pending.Wait()
	documents := newDocumentReader(content)
	for n := 1; ; n++ {
		doc, err := documents.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read catalog file %q: document %d: %w", name, n, err)
		}
		if r.stopped() {
			return errStopped
		}
		if r.met++; r.met > maxDocuments {
			return fmt.Errorf("%w: it has more than %d documents", ErrNotCatalog, maxDocuments)
		}
		if r.skip != nil && r.skip(doc) {
			r.skipDocument()
			continue
		}
		r.sent++
		r.pending.Add(1)
		r.jobs <- job{r.sent, name, n, documents.line, bytes.Clone(doc)}
	}
}

func (r *eachReader) skipDocument() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.documents++
	r.skipped = true
}

func (r *eachReader) stopped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err != nil
}

// work parses everything that was sent, even after an error: the first broken document of a catalog is reported,
// whichever is noticed first.
func (r *eachReader) work() {
	for j := range r.jobs {
		if err := r.parse(j); err != nil {
			r.fail(j, err)
		}
		r.pending.Done()
	}
}

func (r *eachReader) fail(j job, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil || j.seq < r.failed {
		r.err, r.failed = err, j.seq
	}
}

func (r *eachReader) parse(j job) error {
	var in document
	if err := decode(j.doc, j.line, &in); err != nil {
		return fmt.Errorf("read catalog file %q: document %d: %w", j.file, j.n, err)
	}
	if in.Schema != schemaBundle {
		r.mu.Lock()
		defer r.mu.Unlock()
		if err := r.add(j.doc, j.line); err != nil {
			return fmt.Errorf("read catalog file %q: document %d: %w", j.file, j.n, err)
		}
		return nil
	}
	if !r.wanted(in.Package) {
		r.skipDocument()
		return nil
	}
	b := &Bundle{Name: in.Name, Image: in.Image, RelatedImages: in.RelatedImages}
	problem := b.read(in)
	if problem == nil {
		if err := r.take(in.Package, b); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.documents++
	d := r.draft(in.Package)
	before := d.cost
	d.keep(b, problem)
	if err := r.spend(in.Package, d.cost-before); err != nil {
		return fmt.Errorf("read catalog file %q: document %d: %w", j.file, j.n, err)
	}
	return nil
}

// read fills in a bundle from its document.
func (b *Bundle) read(in document) error {
	if in.Name == "" {
		return errors.New("a bundle has no name")
	}
	if err := b.identify(in.Package, in.Properties); err != nil {
		return fmt.Errorf("bundle %q: %w", in.Name, err)
	}
	if err := b.fill(in.Properties, func(registryv1.Property, string) bool { return true }); err != nil {
		return fmt.Errorf("bundle %q: %w", in.Name, err)
	}
	return nil
}

// keep adds what belongs to the graph of a bundle.
func (d *draft) keep(b *Bundle, problem error) {
	if problem == nil && d.pkg.Bundles[b.Name] != nil {
		problem = fmt.Errorf("bundle %q is declared twice", b.Name)
	}
	if problem != nil {
		d.addProblem(problem)
		return
	}
	graph := *b
	graph.Objects, graph.RelatedImages = nil, nil
	graph.Properties = slices.DeleteFunc(slices.Clone(b.Properties),
		func(p registryv1.Property) bool { return p.Type == registryv1.PropertyCSVMetadata })
	d.addGraph(&graph)
}
