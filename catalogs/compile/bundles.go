// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/operator-registry/alpha/declcfg"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/crd"
	"github.com/bellwether-dev/bellwether/bundles/rollback"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/agree"
	"github.com/bellwether-dev/bellwether/catalogs/ladder"
)

// Versions returns all versions of a ladder, including retired versions, in the order in which Compile requests their
// contents: the lowest first. The error wraps ladder.ErrInvalid.
func Versions(l *ladder.Ladder) ([]string, error) {
	all, err := listMembers(l)
	if err != nil {
		return nil, err
	}
	out := make([]string, 0, len(all))
	for _, m := range all {
		out = append(out, m.version.String())
	}
	return out, nil
}

// renderer renders bundles one after another, the lowest version first. It keeps only the parts of a bundle that are
// compared with later bundles.
type renderer struct {
	in      Input
	result  *Result
	archive *crd.Archive
	// published are all versions up to now, and offered the versions that the package offers; both contain
	// reduced bundles.
	published, offered []*bundles.Bundle
	// head is the name of the default channel's head, whose description is used if the ladder has none.
	head     string
	problems []error
}

// addBundles reads and renders the bundles of the ladder, the lowest version first. It adds to the result their
// documents, unless Input.Emit receives the documents, their relations and notes, and the description and icon of the
// package. Problems of single bundles are reported together.
func (r *Result) addBundles(in Input) error {
	r.Package.Icon = in.Icon
	all, err := listMembers(in.Ladder)
	if err != nil {
		return err
	}
	x := &renderer{in: in, result: r, archive: crd.NewArchive()}
	if head, err := r.Package.Head(""); err == nil {
		x.head = head.Name
	}
	for _, m := range all {
		if err := x.addVersion(m); err != nil {
			return err
		}
	}
	if err := errors.Join(x.problems...); err != nil {
		return fmt.Errorf("compile package %q: %w", in.Ladder.Package, err)
	}
	return nil
}

// addVersion renders the bundle of a version and adds its document. It returns an error that ends the compilation;
// problems of the bundle itself are added to x.problems. A version that the package does not have is only kept for the
// comparison with later versions.
func (x *renderer) addVersion(m member) error {
	content, ok, err := x.in.Contents.Content(m.version.String())
	if err != nil {
		return err
	}
	b := x.result.Package.Bundles[m.name]
	if b == nil { // retired, or blocked and above the heads of its channels
		if ok && content.Bundle != nil {
			x.published = append(x.published, x.archive.Reduce(content.Bundle))
		}
		return nil
	}
	if err := checkBundle(content.Bundle, x.in.Ladder.Package, b); err != nil {
		x.problems = append(x.problems, err)
		return nil
	}
	if content.Image != "" {
		b.Image = content.Image
	}
	document, manifests, err := renderWithManifests(content.Bundle, b.Image,
		x.in.Ladder.Policy.Content == ladder.Inline)
	if err != nil {
		x.problems = append(x.problems, err)
		return nil
	}
	if b.Name == x.head {
		x.result.fillFromCSV(content.Bundle.CSV)
	}
	reduced := x.archive.Reduce(content.Bundle)
	x.addRollbacks(reduced, &document)
	x.published, x.offered = append(x.published, reduced), append(x.offered, reduced)
	return x.addDocument(b, document, manifests)
}

// addDocument passes a document to Input.Emit or, if Emit is nil, adds the document to the result and its content to b.
// It also adds the relation of the bundle. A bundle that opm would refuse is added to x.problems instead.
func (x *renderer) addDocument(b *catalogs.Bundle, document declcfg.Bundle, manifests [][]byte) error {
	full := *b
	fillFromDocument(&full, document, manifests)
	if err := agree.CheckBundleWithOPM(x.in.Ladder.Package, &full); err != nil {
		x.problems = append(x.problems, fmt.Errorf("%w: version %s: %w", ErrContent, b.Version, err))
		return nil
	}
	x.result.noteIfTooLarge(&full)
	x.result.Relations = append(x.result.Relations, buildRelation(&full))
	raw, err := encodeJSON(document)
	if err != nil {
		return fmt.Errorf("encode bundle %s: %w", document.Name, err)
	}
	if x.in.Emit != nil {
		return x.in.Emit(raw)
	}
	*b = full
	x.result.Config.Bundles = append(x.result.Config.Bundles, document)
	x.result.bundles = append(x.result.bundles, append(raw, '\n'))
	return nil
}

// buildRelation returns the name and version of a bundle, and the properties that state which APIs it provides and
// what it requires of other bundles.
func buildRelation(b *catalogs.Bundle) Relation {
	out := Relation{Name: b.Name, Version: b.Version.String()}
	for _, p := range b.Properties {
		switch p.Type {
		case bundles.PropertyGVK, bundles.PropertyGVKRequired, bundles.PropertyPackageRequired,
			bundles.PropertyConstraint:
			out.Properties = append(out.Properties, p)
		}
	}
	return out
}

// noteIfTooLarge adds a note if a bundle cannot be installed because it has no image and is too large to be inlined.
func (r *Result) noteIfTooLarge(b *catalogs.Bundle) {
	size := 0
	for _, o := range b.Objects {
		size += len(o)
	}
	if b.Image == "" && size > bundles.MaxInlineBytes {
		r.bundleNotes = append(r.bundleNotes,
			fmt.Sprintf("version %s has no image and %d KiB of manifests, which is more than OLM can install inline: "+
				"push it, and give its image", b.Version, size>>10))
	}
}

// fillFromCSV copies the description and the icon of a ClusterServiceVersion to the package if the package has none.
// OLM shows these fields of the default channel's head when it lists operators.
func (r *Result) fillFromCSV(csv *operatorsv1alpha1.ClusterServiceVersion) {
	p := r.Package
	if p.Description == "" {
		p.Description = csv.Spec.Description
	}
	if p.Icon == nil && len(csv.Spec.Icon) > 0 {
		p.Icon = decodeIcon(csv.Spec.Icon[0])
	}
}

// addRollbacks adds a property to a document: for each direct predecessor of the bundle, what a rollback to that
// predecessor requires. It adds nothing without a predecessor. All lower versions must already be in x.published.
func (x *renderer) addRollbacks(to *bundles.Bundle, document *declcfg.Bundle) {
	var rollbacks []bundles.Rollback
	for _, from := range listPredecessors(x.result.Package, x.in.Ladder, to.Name, x.offered) {
		// A cluster might have run each published version from the predecessor on.
		between := x.published[slices.Index(x.published, from):]
		rollbacks = append(rollbacks, rollback.Classify(from, to, between, nil))
	}
	if len(rollbacks) == 0 {
		return
	}
	value, err := json.Marshal(rollbacks)
	if err != nil {
		panic(err) // Strings always marshal.
	}
	document.Properties = insertProperty(document.Properties, bundles.PropertyRollback, value)
}
