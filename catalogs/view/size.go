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
	"github.com/bellwether-dev/bellwether/bundles/registryv1"
	"github.com/bellwether-dev/bellwether/catalogs"
)

const (
	// stepOverhead is what an InstallPlan says about a manifest besides the manifest.
	stepOverhead = 400
	// permissionOverhead is what OLM generates around a CSV's list of rules: a service account, a role and its
	// binding, a step each.
	permissionOverhead = 3000
)

// choose sets the route and the size of each part and returns the sum of what is inlined. All parts that are not stubs
// may end up in one InstallPlan, so they share the limit; the largest ones that can leave it do.
func choose(parts []*part, limit int) (int, error) {
	if limit <= 0 || limit > registryv1.MaxInlineBytes {
		limit = registryv1.MaxInlineBytes
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
		return 0, tooLarge(inlined, total, limit)
	}
	return total, nil
}

func tooLarge(inlined []*part, total, limit int) error {
	i := slices.IndexFunc(inlined, func(p *part) bool { return p.route == Inline })
	p := inlined[i]
	return fmt.Errorf("%w: bundle %q takes %d KiB of an InstallPlan, all bundles of this step take %d KiB, at most "+
		"%d KiB fit: "+
		"publish it with a bundle image, then OLM unpacks that instead", ErrBundleTooLarge, p.bundle.Name, p.size>>10,
		total>>10, limit>>10)
}

// measure sets the size and a first choice of route.
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
		p.route, p.size = Inline, p.inlineBytes()
		return nil
	case b.Image != "":
		p.route = Unpack
		return nil
	default:
		return fmt.Errorf("%w: bundle %q has neither manifests nor an image in the catalog", ErrNoContent, b.Name)
	}
}

// inlineBytes is what the bundle adds to an InstallPlan. A plan holds each manifest as a string within its own JSON,
// so every quote and backslash counts twice; it repeats the CSV's permissions as RBAC objects, and the bundle's
// properties as an annotation of the CSV, escaped again.
func (p *part) inlineBytes() int {
	size := 0
	for _, o := range p.objects {
		size += escaped(o) + stepOverhead
	}
	if properties, err := json.Marshal(p.bundle.Properties); err == nil {
		if annotation, err := json.Marshal(string(properties)); err == nil {
			size += escaped(annotation)
		}
	}
	for _, rules := range permissions(p.csv) {
		size += escaped(rules) + permissionOverhead
	}
	return size
}

// escaped is the length of JSON as a string in another JSON document, both written as the API server does, with
// <, > and & escaped.
func escaped(object []byte) int {
	var html bytes.Buffer
	json.HTMLEscape(&html, object)
	out, err := json.Marshal(html.String())
	if err != nil {
		panic(fmt.Sprintf("marshal a string: %v", err)) // No string fails to marshal.
	}
	return len(out)
}

func permissions(csv []byte) []json.RawMessage {
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
	// A CSV without readable permissions adds none; OLM judges whether it is any good.
	if err := json.Unmarshal(csv, &in); err != nil {
		return nil
	}
	return append(in.Spec.Install.Spec.Permissions, in.Spec.Install.Spec.ClusterPermissions...)
}

// decode fills in the manifests as they are served, and which of them is the bundle's own ClusterServiceVersion. OLM
// names what it installs after it, and plans are admitted by name, so one of another name is not the bundle's.
func (p *part) decode() error {
	manifests, err := bundles.Canonical(p.bundle.Objects)
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
