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
	"github.com/bellwether-dev/bellwether/bundles/registryv1"
	"github.com/bellwether-dev/bellwether/bundles/rollback"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/ladder"
	"github.com/bellwether-dev/bellwether/catalogs/opm"
)

// Versions returns all versions of a ladder, the retired ones too, in the order in which Compile requests their
// contents: the lowest first. The error wraps ladder.ErrInvalid.
func Versions(l *ladder.Ladder) ([]string, error) {
	all, err := members(l)
	if err != nil {
		return nil, err
	}
	out := make([]string, 0, len(all))
	for _, m := range all {
		out = append(out, m.version.String())
	}
	return out, nil
}

// renderer renders bundles one after another, the lowest version first. Of each it keeps only what later ones are
// compared with.
type renderer struct {
	in      Input
	result  *Result
	archive *crd.Archive
	// published are all versions so far, and offered those of them that the package offers; both are reduced.
	published, offered []*bundles.Bundle
	// head describes the package if nothing else does.
	head     string
	problems []error
}

// addContents adds what the bundles and the icon say.
func (r *Result) addContents(in Input) error {
	r.Package.Icon = in.Icon
	all, err := members(in.Ladder)
	if err != nil {
		return err
	}
	x := &renderer{in: in, result: r, archive: crd.NewArchive()}
	if head, err := r.Package.Target("", ""); err == nil {
		x.head = head.Name
	}
	for _, m := range all {
		if err := x.add(m); err != nil {
			return err
		}
	}
	if err := errors.Join(x.problems...); err != nil {
		return fmt.Errorf("compile package %q: %w", in.Ladder.Package, err)
	}
	return nil
}

// add renders a version. An error ends the compilation; other problems are gathered, to be reported together.
func (x *renderer) add(m member) error {
	content, ok, err := x.in.Contents.Content(m.version.String())
	if err != nil {
		return err
	}
	b := x.result.Package.Bundles[m.name]
	if b == nil { // retired or blocked
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
	document, err := Render(content.Bundle, b.Image, x.in.Ladder.Policy.Content == ladder.Inline)
	if err != nil {
		x.problems = append(x.problems, err)
		return nil
	}
	if b.Name == x.head {
		x.result.describe(content.Bundle.CSV)
	}
	reduced := x.archive.Reduce(content.Bundle)
	x.addRollbacks(reduced, &document)
	x.published, x.offered = append(x.published, reduced), append(x.offered, reduced)
	return x.finish(b, document)
}

// finish adds a complete document to the result, or emits it.
func (x *renderer) finish(b *catalogs.Bundle, document declcfg.Bundle) error {
	full := *b
	if err := fill(&full, document); err != nil {
		return err
	}
	if err := opm.CheckBundle(x.in.Ladder.Package, &full); err != nil {
		x.problems = append(x.problems, fmt.Errorf("%w: version %s: %w", ErrContent, b.Version, err))
		return nil
	}
	x.result.noteIfTooLarge(&full)
	x.result.Relations = append(x.result.Relations, relationOf(&full))
	raw, err := encode(document)
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

func relationOf(b *catalogs.Bundle) Relation {
	out := Relation{Name: b.Name, Version: b.Version.String()}
	for _, p := range b.Properties {
		switch p.Type {
		case registryv1.PropertyGVK, registryv1.PropertyGVKRequired, registryv1.PropertyPackageRequired,
			registryv1.PropertyConstraint:
			out.Properties = append(out.Properties, p)
		}
	}
	return out
}

// noteIfTooLarge adds a note if a bundle cannot be installed, because it has no
// image and is too large to be inlined.
func (r *Result) noteIfTooLarge(b *catalogs.Bundle) {
	size := 0
	for _, o := range b.Objects {
		size += len(o)
	}
	if b.Image == "" && size > registryv1.MaxInlineBytes {
		r.bundleNotes = append(r.bundleNotes,
			fmt.Sprintf("version %s has no image and %d KiB of manifests, which is more than OLM can install inline: "+
				"push it, and give its image", b.Version, size>>10))
	}
}

// describe takes a missing description and icon from the head of the default
// channel, as OLM does when it lists operators.
func (r *Result) describe(csv *operatorsv1alpha1.ClusterServiceVersion) {
	p := r.Package
	if p.Description == "" {
		p.Description = csv.Spec.Description
	}
	if p.Icon == nil && len(csv.Spec.Icon) > 0 {
		p.Icon = iconOf(csv.Spec.Icon[0])
	}
}

// addRollbacks adds to a bundle what a rollback to its direct predecessors
// requires. All lower versions were published before.
func (x *renderer) addRollbacks(to *bundles.Bundle, document *declcfg.Bundle) {
	var ways []registryv1.Rollback
	for _, from := range predecessors(x.result.Package, x.in.Ladder, to.Name, x.offered) {
		between := x.published[slices.Index(x.published, from):]
		ways = append(ways, rollback.Classify(from, to, between, nil))
	}
	if len(ways) == 0 {
		return
	}
	value, err := json.Marshal(ways)
	if err != nil {
		panic(err) // Strings always marshal.
	}
	document.Properties = insertProperty(document.Properties, registryv1.PropertyRollback, value)
}
