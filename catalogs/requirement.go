// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/bellwether-dev/bellwether/bundles"
)

// GVK identifies a Kubernetes API.
type GVK struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}

// String returns the form that kubectl uses: kind.version.group.
func (g GVK) String() string { return strings.Join([]string{g.Kind, g.Version, g.Group}, ".") }

// Compare orders by group, kind and version.
func (g GVK) Compare(o GVK) int {
	return cmp.Or(cmp.Compare(g.Group, o.Group), cmp.Compare(g.Kind, o.Kind), cmp.Compare(g.Version, o.Version))
}

// Requirement is something that a bundle needs from another bundle. Exactly one of its fields is set, apart from
// Range, which belongs to Package.
type Requirement struct {
	Package string
	Range   string
	GVK     *GVK
	// All and Any are the compound forms of olm.constraint.
	All []Requirement
	Any []Requirement
	// Opaque describes a constraint that only OLM can evaluate: cel, not, and constraints that this code does
	// not support.
	Opaque string
}

// String describes the requirement for messages.
func (r Requirement) String() string {
	switch {
	case r.Package != "":
		return fmt.Sprintf("package %s in %s", r.Package, cmp.Or(r.Range, "any version"))
	case r.GVK != nil:
		return "API " + r.GVK.String()
	case r.All != nil:
		return "all of (" + joinRequirements(r.All) + ")"
	case r.Any != nil:
		return "any of (" + joinRequirements(r.Any) + ")"
	default:
		return "constraint " + r.Opaque
	}
}

func joinRequirements(rs []Requirement) string {
	text := make([]string, 0, len(rs))
	for _, r := range rs {
		text = append(text, r.String())
	}
	return strings.Join(text, "; ")
}

// SatisfiedBy reports whether a bundle of a package satisfies the requirement, by the rules of OLM v0's resolver: a
// single bundle must satisfy all of a compound constraint.
func (r Requirement) SatisfiedBy(pkg string, b *Bundle) bool {
	switch {
	case r.Package != "":
		inRange, err := semver.ParseRange(r.Range)
		return err == nil && r.Package == pkg && inRange(b.Version)
	case r.GVK != nil:
		return slices.Contains(b.Provides(), *r.GVK)
	case r.All != nil:
		return !slices.ContainsFunc(r.All, func(sub Requirement) bool { return !sub.SatisfiedBy(pkg, b) })
	case r.Any != nil:
		return slices.ContainsFunc(r.Any, func(sub Requirement) bool { return sub.SatisfiedBy(pkg, b) })
	default: // only OLM can evaluate an opaque constraint
		return false
	}
}

// Requirements returns what the bundle needs, in the order of its properties.
func (b *Bundle) Requirements() ([]Requirement, error) {
	var out []Requirement
	for _, p := range b.Properties {
		r, err := readRequirement(p)
		if err != nil {
			return nil, fmt.Errorf("decode property %s of bundle %q: %w", p.Type, b.Name, err)
		}
		if r != nil {
			out = append(out, *r)
		}
	}
	return out, nil
}

// readRequirement returns the requirement of a property; nil if the property is not a requirement.
func readRequirement(p bundles.Property) (*Requirement, error) {
	switch p.Type {
	case bundles.PropertyPackageRequired:
		var c constraintPackage
		if err := json.Unmarshal(p.Value, &c); err != nil {
			return nil, err
		}
		return &Requirement{Package: c.PackageName, Range: c.VersionRange}, nil
	case bundles.PropertyGVKRequired:
		var gvk GVK
		if err := json.Unmarshal(p.Value, &gvk); err != nil {
			return nil, err
		}
		return &Requirement{GVK: &gvk}, nil
	case bundles.PropertyConstraint:
		var c constraint
		if err := json.Unmarshal(p.Value, &c); err != nil {
			return nil, err
		}
		r := c.toRequirement()
		return &r, nil
	default:
		return nil, nil
	}
}

// constraint is the value of olm.constraint; see OLM's enhancement "compound bundle constraints".
type constraint struct {
	FailureMessage string             `json:"failureMessage"`
	Package        *constraintPackage `json:"package"`
	GVK            *GVK               `json:"gvk"`
	All            *compound          `json:"all"`
	Any            *compound          `json:"any"`
}

type constraintPackage struct {
	PackageName  string `json:"packageName"`
	VersionRange string `json:"versionRange"`
}

type compound struct {
	Constraints []constraint `json:"constraints"`
}

func (c constraint) toRequirement() Requirement {
	switch {
	case c.Package != nil:
		return Requirement{Package: c.Package.PackageName, Range: c.Package.VersionRange}
	case c.GVK != nil:
		return Requirement{GVK: c.GVK}
	case c.All != nil:
		return Requirement{All: c.All.toRequirements()}
	case c.Any != nil:
		return Requirement{Any: c.Any.toRequirements()}
	default:
		return Requirement{Opaque: cmp.Or(c.FailureMessage, "that only OLM can judge")}
	}
}

func (c compound) toRequirements() []Requirement {
	out := make([]Requirement, 0, len(c.Constraints))
	for _, sub := range c.Constraints {
		out = append(out, sub.toRequirement())
	}
	return out
}
