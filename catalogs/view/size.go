// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/catalogs"
)

const (
	// stepOverhead is the size of a manifest's step in an InstallPlan besides the manifest, in bytes.
	stepOverhead = 400
	// permissionOverhead is the size of the objects that OLM generates for a CSV's list of rules, in bytes: a service
	// account, a role and its binding, one step each.
	permissionOverhead = 3000
)

// chooseRoutes sets the route and the size of each part and returns the total size of the inlined parts. All parts
// that are not stubs can be in one InstallPlan, so they share the limit. If they exceed it, the largest parts that
// have an image are unpacked instead. The error wraps ErrBundleTooLarge if that is not enough.
func chooseRoutes(parts []*part, limit int) (int, error) {
	if limit <= 0 || limit > bundles.MaxInlineBytes {
		limit = bundles.MaxInlineBytes
	}
	total := 0
	var inlined []*part
	for _, p := range parts {
		if err := p.measure(); err != nil {
			return 0, err
		}
		if p.route == Inline {
			total += p.size
			inlined = append(inlined, p)
		}
	}
	slices.SortStableFunc(inlined, func(a, b *part) int { return b.size - a.size })
	for _, p := range inlined {
		if total <= limit {
			break
		}
		if p.bundle.Image != "" {
			p.route = Unpack
			total -= p.size
		}
	}
	if total > limit {
		return 0, newTooLargeError(inlined, total, limit)
	}
	return total, nil
}

// newTooLargeError returns the error for a view whose inlined parts exceed the limit. It names the largest part that
// cannot be unpacked. inlined must be sorted, the largest first.
func newTooLargeError(inlined []*part, total, limit int) error {
	i := slices.IndexFunc(inlined, func(p *part) bool { return p.route == Inline })
	p := inlined[i]
	return fmt.Errorf("%w: bundle %q takes %d KiB of an InstallPlan, all bundles of this step take %d KiB, at most "+
		"%d KiB fit: "+
		"publish it with a bundle image, then OLM unpacks that instead", ErrBundleTooLarge, p.bundle.Name, p.size>>10,
		total>>10, limit>>10)
}

// measure sets a first choice of the route: Stub, or Inline if the catalog has the manifests, or Unpack if it has only
// the image. It sets the size of an inlined part. The error wraps ErrNoContent if there is neither.
func (p *part) measure() error {
	b := p.bundle
	switch {
	case p.stub:
		p.route = Stub
		return nil
	case len(b.Objects) > 0:
		if err := p.decode(); err != nil {
			return err
		}
		p.route, p.size = Inline, p.computeInlineBytes()
		return nil
	case b.Image != "":
		p.route = Unpack
		return nil
	default:
		return fmt.Errorf("%w: bundle %q has neither manifests nor an image in the catalog", ErrNoContent, b.Name)
	}
}

// computeInlineBytes returns the bytes that the bundle adds to an InstallPlan. A plan contains each manifest as a
// string within its own JSON, so every quote and backslash counts twice. The plan repeats the CSV's permissions as
// RBAC objects, and the bundle's properties as an annotation of the CSV, which is escaped again.
func (p *part) computeInlineBytes() int {
	size := 0
	for _, o := range p.objects {
		size += measureEscaped(o) + stepOverhead
	}
	if properties, err := json.Marshal(p.bundle.Properties); err == nil {
		if annotation, err := json.Marshal(string(properties)); err == nil {
			size += measureEscaped(annotation)
		}
	}
	for _, rules := range readPermissions(p.csv) {
		size += measureEscaped(rules) + permissionOverhead
	}
	return size
}

// measureEscaped returns the length of JSON as a string in another JSON document, both written as the API server
// does, with <, > and & escaped.
func measureEscaped(object []byte) int {
	var html bytes.Buffer
	json.HTMLEscape(&html, object)
	out, err := json.Marshal(html.String())
	if err != nil {
		panic(fmt.Sprintf("marshal a string: %v", err)) // No string fails to marshal.
	}
	return len(out)
}

// readPermissions returns the lists of rules in a CSV, one per service account.
func readPermissions(csv []byte) []json.RawMessage {
	var in struct {
		Spec struct {
			Install struct {
				Spec struct {
					Permissions        []json.RawMessage `json:"permissions"`
					ClusterPermissions []json.RawMessage `json:"clusterPermissions"`
				} `json:"spec"`
			} `json:"install"`
		} `json:"spec"`
	}
	// A CSV without readable permissions adds no bytes; OLM decides whether the CSV is valid.
	if err := json.Unmarshal(csv, &in); err != nil {
		return nil
	}
	return append(in.Spec.Install.Spec.Permissions, in.Spec.Install.Spec.ClusterPermissions...)
}

// decode sets the served manifests, and finds the bundle's ClusterServiceVersion. OLM uses its name for the installed
// objects, and plans are admitted by name, so it must have the name of the bundle.
func (p *part) decode() error {
	manifests, err := bundles.Canonicalize(p.bundle.Objects)
	if err != nil {
		return fmt.Errorf("%w: bundle %q: %w", catalogs.ErrInvalidPackage, p.bundle.Name, err)
	}
	for _, m := range manifests {
		p.objects = append(p.objects, m.JSON)
		if m.Kind != operatorsv1alpha1.ClusterServiceVersionKind {
			continue
		}
		if m.Name != p.bundle.Name || p.csv != nil {
			return fmt.Errorf("%w: bundle %q has the ClusterServiceVersion %q: it needs one, named like itself",
				ErrWrongCSV, p.bundle.Name, m.Name)
		}
		p.csv = m.JSON
	}
	if p.csv == nil {
		return fmt.Errorf("%w: bundle %q holds no ClusterServiceVersion", ErrWrongCSV, p.bundle.Name)
	}
	return nil
}
