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

	"github.com/bellwether-dev/bellwether/bundles"
)

// ReadGraphs reads every package, sorted by name, without the manifests of its bundles. Its memory is bounded by the
// graphs and the largest documents.
func ReadGraphs(files Files) ([]*Package, error) {
	return ReadEach(files, func(string, *Bundle) error { return nil })
}

// ReadEach is like ReadGraphs, but passes each bundle once with all its content to visit, while it reads. It calls
// visit with the package's name, from several goroutines at a time and in any order. visit must not keep the bundle.
// An error of visit ends the reading and is returned unchanged.
func ReadEach(files Files, visit func(pkg string, b *Bundle) error) ([]*Package, error) {
	r, err := readDrafts(files, visit)
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

// ReadGraphsToImport is like ReadPackageToImport for all packages, sorted by name. An invalid package does not affect
// other packages: the map contains its error by the package's name.
func ReadGraphsToImport(files Files) ([]*Package, map[string]error, error) {
	r, err := readDrafts(files, func(string, *Bundle) error { return nil })
	if err != nil {
		return nil, nil, err
	}
	r.joinsHeads = true
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

// readDrafts reads all documents and passes each bundle to visit.
func readDrafts(files Files, visit func(pkg string, b *Bundle) error) (*eachReader, error) {
	r := &eachReader{reader: newReader(DefaultBudget, func(string) bool { return true }), visit: visit,
		jobs: make(chan job)}
	if err := r.readEach(files); err != nil {
		return nil, err
	}
	return r, nil
}

// ReadEachInPackage is like ReadEach for one package. It keeps nothing of other packages.
func ReadEachInPackage(files Files, name string, visit func(b *Bundle) error) (*Package, error) {
	r := &eachReader{reader: newReader(DefaultBudget, func(pkg string) bool { return pkg == name }),
		jobs: make(chan job), visit: func(_ string, b *Bundle) error { return visit(b) }}
	r.canSkip = newUnneededBundleFilter([]string{name})
	if err := r.readEach(files); err != nil {
		return nil, err
	}
	return r.assemble(name)
}

// readEach reads all files. Several workers parse documents concurrently.
func (r *eachReader) readEach(files Files) error {
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(r.parseJobs)
	}
	err := files(r.sendDocuments)
	close(r.jobs)
	workers.Wait()
	// If a job failed, its error is the reason why the reading ended.
	if r.err != nil {
		return r.err
	}
	if err != nil {
		return err
	}
	return r.checkCatalog()
}

// job is a document that was read from a file and must be parsed.
type job struct {
	seq  int // position among the sent documents of all files
	file string
	n    int // position within the file, from 1
	line int // first line of the document, from 1
	doc  []byte
}

type eachReader struct {
	*reader
	visit func(pkg string, b *Bundle) error
	jobs  chan job
	// readCount counts all documents, sentCount the documents that were sent to workers.
	readCount, sentCount int
	// pending counts jobs that were sent and are not done.
	pending sync.WaitGroup

	mu        sync.Mutex
	err       error
	failedSeq int // the position of the job that returned err
}

// errStopped ends the reading of files after a job failed.
var errStopped = errors.New("reading stopped")

// sendDocuments sends the documents of a file to the workers. It returns after all of them are parsed, so that
// the parsing is part of reading the file.
func (r *eachReader) sendDocuments(name string, content io.Reader) error {
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
		if r.hasFailed() {
			return errStopped
		}
		if r.readCount++; r.readCount > maxDocuments {
			return fmt.Errorf("%w: it has more than %d documents", ErrNotCatalog, maxDocuments)
		}
		if r.canSkip != nil && r.canSkip(doc) {
			r.countSkipped()
			continue
		}
		r.sentCount++
		r.pending.Add(1)
		r.jobs <- job{seq: r.sentCount, file: name, n: n, line: documents.line, doc: bytes.Clone(doc)}
	}
}

// countSkipped counts a document that is not needed.
func (r *eachReader) countSkipped() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.documents++
	r.skipped = true
}

func (r *eachReader) hasFailed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err != nil
}

// parseJobs parses all jobs, even after an error: the error must name the first broken document of the catalog, and
// another worker can reach a broken document further down before that one.
func (r *eachReader) parseJobs() {
	for j := range r.jobs {
		if err := r.parse(j); err != nil {
			r.recordError(j, err)
		}
		r.pending.Done()
	}
}

// recordError keeps the error of the earliest document that failed.
func (r *eachReader) recordError(j job, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil || j.seq < r.failedSeq {
		r.err, r.failedSeq = err, j.seq
	}
}

// parse decodes a document and adds it to the draft of its package. It passes a valid bundle to visit first. An invalid
// bundle makes its package invalid, not the catalog.
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
	if !r.needsPackage(in.Package) {
		r.countSkipped()
		return nil
	}
	b := &Bundle{Name: in.Name, Image: in.Image, RelatedImages: in.RelatedImages}
	problem := b.fillFromDocument(in)
	if problem == nil {
		if err := r.visit(in.Package, b); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.documents++
	d := r.ensureDraft(in.Package)
	costBefore := d.cost
	d.addWithoutManifests(b, problem)
	if err := r.spend(in.Package, d.cost-costBefore); err != nil {
		return fmt.Errorf("read catalog file %q: document %d: %w", j.file, j.n, err)
	}
	return nil
}

// fillFromDocument sets version, release, properties and objects of a bundle from its document.
func (b *Bundle) fillFromDocument(in document) error {
	if in.Name == "" {
		return errors.New("a bundle has no name")
	}
	if err := b.readVersion(in.Package, in.Properties); err != nil {
		return fmt.Errorf("bundle %q: %w", in.Name, err)
	}
	if err := b.addProperties(in.Properties, func(bundles.Property, string) bool { return true }); err != nil {
		return fmt.Errorf("bundle %q: %w", in.Name, err)
	}
	return nil
}

// addWithoutManifests adds a bundle to the graph without its manifests and images. If problem is not nil, it records
// problem instead.
func (d *draft) addWithoutManifests(b *Bundle, problem error) {
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
		func(p bundles.Property) bool { return p.Type == bundles.PropertyCSVMetadata })
	d.addGraphBundle(&graph)
}
