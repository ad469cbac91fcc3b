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
	"github.com/bellwether-dev/bellwether/internal/untrusted"
)

// Kinds of objects that contain no objectives and only report which objects exist.
const (
	kindOperator = "ManagedOperator"
	kindProbe    = "EndpointProbe"
)

// Given lists the objects that files declare to exist.
type Given struct {
	// Operators are the ManagedOperators.
	Operators []types.NamespacedName
	// Probes are the EndpointProbes, and Services the services that OperatorSLOs have probed.
	Probes, Services []GivenProbe
}

// GivenProbe is a probe of an operator.
type GivenProbe struct {
	Operator types.NamespacedName
	// Name is the label probe of its series.
	Name string
	// subject names the object with the probe in a warning.
	subject string
}

// Add adds the objects of another file.
func (g *Given) Add(other Given) {
	g.Operators = append(g.Operators, other.Operators...)
	g.Probes = append(g.Probes, other.Probes...)
	g.Services = append(g.Services, other.Services...)
}

// readOperator adds a ManagedOperator. namespace is used if the object has none.
func (g *Given) readOperator(doc []byte, namespace string) error {
	var object v1alpha1.ManagedOperator
	if err := untrusted.UnmarshalStrict(doc, &object); err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	g.Operators = append(g.Operators, types.NamespacedName{Namespace: cmp.Or(object.Namespace, namespace),
		Name: object.Name})
	return nil
}

// readProbe adds an EndpointProbe.
func (g *Given) readProbe(doc []byte) error {
	var object v1alpha1.EndpointProbe
	if err := untrusted.UnmarshalStrict(doc, &object); err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	operator := types.NamespacedName{Namespace: object.Spec.Operator.Namespace, Name: object.Spec.Operator.Name}
	g.Probes = append(g.Probes, GivenProbe{Operator: operator, Name: cmp.Or(object.Spec.Name, object.Name),
		subject: kindProbe + " " + object.Name})
	return nil
}

// Unknown returns a warning for each operator and probe that objectives or probes name and that is not
// among the given objects. If no object of a kind was given, objects of that kind are not checked.
func (g *Given) Unknown(all slo.Set) []string {
	var out []string
	reportMissing := func(subject string, id types.NamespacedName) {
		if len(g.Operators) > 0 && !slices.Contains(g.Operators, id) {
			out = append(out, fmt.Sprintf("%s: there is no ManagedOperator %s%s; "+
				"correct the name, or create it: until then the alert BellwetherSLIAbsent says that it is missing",
				subject, id, g.describeNear(id)))
		}
	}
	for _, op := range all.Operators {
		reportMissing("objectives of "+op.ID().String(), op.ID())
		for _, o := range op.Objectives {
			if text := g.checkProbe(op, o.SLI); text != "" {
				out = append(out, text)
			}
		}
	}
	for _, p := range g.Probes {
		reportMissing(p.subject, p.Operator)
	}
	return out
}

// describeNear returns a part of a sentence with an operator
// of the same name in another namespace, or an empty string.
func (g *Given) describeNear(id types.NamespacedName) string {
	for _, other := range g.Operators {
		if other.Name == id.Name {
			return fmt.Sprintf(" (but %s)", other)
		}
	}
	return ""
}

// checkProbe returns a warning if the SLI is about a probe that does not exist, or an empty string. If no probes were
// given, it checks nothing.
func (g *Given) checkProbe(op slo.Operator, sli string) string {
	name, isProbe := strings.CutPrefix(sli, slo.Probe)
	name, _, _ = strings.Cut(name, ":") // without the vantage point
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
