// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package read

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/untrusted"
)

// Kinds of objects from which no objective is read, and which tell what exists.
const (
	kindOperator = "ManagedOperator"
	kindProbe    = "EndpointProbe"
)

// Given is what files say of what exists.
type Given struct {
	// Operators are the ManagedOperators.
	Operators []types.NamespacedName
	// Probes are the EndpointProbes, and Services what OperatorSLOs have probed.
	Probes, Services []GivenProbe
}

// GivenProbe is a probe of an operator.
type GivenProbe struct {
	Operator types.NamespacedName
	// Name is the label probe of its series.
	Name string
	// of names it in a warning.
	of string
}

// Add adds what another file says.
func (g *Given) Add(other Given) {
	g.Operators = append(g.Operators, other.Operators...)
	g.Probes = append(g.Probes, other.Probes...)
	g.Services = append(g.Services, other.Services...)
}

func (g *Given) readOperator(doc []byte, namespace string) error {
	var object v1alpha1.ManagedOperator
	if err := untrusted.UnmarshalStrict(doc, &object); err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	g.Operators = append(g.Operators, types.NamespacedName{Namespace: cmp.Or(object.Namespace, namespace),
		Name: object.Name})
	return nil
}

func (g *Given) readProbe(doc []byte) error {
	var object v1alpha1.EndpointProbe
	if err := untrusted.UnmarshalStrict(doc, &object); err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	of := object.Spec.Operator
	g.Probes = append(g.Probes, GivenProbe{types.NamespacedName{Namespace: of.Namespace, Name: of.Name},
		cmp.Or(object.Spec.Name, object.Name), kindProbe + " " + object.Name})
	return nil
}

// Unknown says which operators and probes the objectives and probes name that are not among what was
// given. Of a kind that was not given at all, nothing is known.
func (g *Given) Unknown(all slo.Set) []string {
	var out []string
	missing := func(what string, id types.NamespacedName) {
		if len(g.Operators) > 0 && !slices.Contains(g.Operators, id) {
			out = append(out, fmt.Sprintf("%s: there is no ManagedOperator %s%s; "+
				"correct the name, or create it: until then the alert BellwetherSLIAbsent says that it is missing",
				what, id, g.near(id)))
		}
	}
	for _, op := range all.Operators {
		missing("objectives of "+op.ID().String(), op.ID())
		for _, o := range op.Objectives {
			if text := g.unknownProbe(op, o.SLI); text != "" {
				out = append(out, text)
			}
		}
	}
	for _, p := range g.Probes {
		missing(p.of, p.Operator)
	}
	return out
}

// near is the other namespace of an operator with that name, as a part of a sentence.
func (g *Given) near(id types.NamespacedName) string {
	for _, other := range g.Operators {
		if other.Name == id.Name {
			return fmt.Sprintf(" (but %s)", other)
		}
	}
	return ""
}

// unknownProbe says of an SLI that it is of a probe that does not exist.
func (g *Given) unknownProbe(op slo.Operator, sli string) string {
	name, isProbe := strings.CutPrefix(sli, slo.Probe)
	name, _, _ = strings.Cut(name, ":") // a vantage point
	if !isProbe || name == "" || len(g.Probes) == 0 {
		return ""
	}
	for _, p := range slices.Concat(g.Probes, g.Services) {
		if p.Operator == op.ID() && p.Name == name {
			return ""
		}
	}
	return fmt.Sprintf("%s: %s: there is no EndpointProbe %q of the operator, and no such service; correct the name, "+
		"or create it: until then the alert BellwetherSLIAbsent says that it is missing", op.ID(), sli, name)
}
