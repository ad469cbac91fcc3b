// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bellwether-dev/bellwether/alerts/slo/spec"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles"
)

const propertiesFile = bundles.MetadataDir + "/properties.yaml"

// listSLORules returns the rules about the SLO profile of the bundle.
func listSLORules() []Rule {
	return []Rule{{
		ID: "slo-profile", Title: "The SLO profile of the bundle cannot be used", Severity: Error,
		Check: checkSLO,
		Why: "The hub takes the objectives and the Services to probe of a new operator from the property `" +
			bundles.PropertySLO + "`. A value that the hub cannot read is ignored, and only the default profile " +
			"applies to the operator. A probe of a Service that does not exist pages from the first minute.",
		Fix: "Correct the value as the message says; the fields are those of an OperatorSLO's spec. Probe Services " +
			"of the bundle, or those that the operator makes itself whenever it runs.",
	}}
}

// checkSLO reports an SLO profile that is invalid or does not fit the bundle.
func checkSLO(in *Input) []Finding {
	return checkProperty(in, bundles.PropertySLO, spec.Profile, checkProbedServices)
}

// checkProbedServices reports probed ports that a Service of the bundle does not have, and warns about probed Services
// that the bundle does not have.
func checkProbedServices(in *Input, profile v1alpha1.OperatorSLOSpec, finding findingFunc) []Finding {
	var out []Finding
	ports := listServicePorts(in.Bundle)
	for _, s := range profile.Services {
		switch servicePorts, isInBundle := ports[s.Name]; {
		case !isInBundle: // the operator may create the Service
			f := finding("Service %s is probed and not in the bundle", s.Name)
			f.Severity = Warning
			out = append(out, f)
		case !servicePorts[s.Port]:
			out = append(out, finding("Service %s is probed on port %d, which it does not have", s.Name, s.Port))
		}
	}
	return out
}

// findingFunc returns a finding about the value of a property, with a formatted message.
type findingFunc func(format string, args ...any) Finding

// checkProperty parses the property with the given name and calls check with its value. It reports a value that does
// not parse, and any further property with this name.
func checkProperty[T any, V ~[]byte](in *Input, name string, parse func(V) (T, error),
	check func(*Input, T, findingFunc) []Finding) []Finding {
	var out []Finding
	found := 0
	for i, p := range in.Bundle.Properties {
		if p.Type != name {
			continue
		}
		finding := func(format string, args ...any) Finding {
			return newFileFinding(in, propertiesFile, p.Type, fmt.Sprintf(format, args...), "properties", i, "value")
		}
		if found++; found > 1 {
			out = append(out, finding("there are several properties %s; only the first one counts", p.Type))
			continue
		}
		value, err := parse(V(p.Value))
		if err != nil {
			out = append(out, finding("%s", clip(err.Error())))
			continue
		}
		out = append(out, check(in, value, finding)...)
	}
	return out
}

// listServicePorts returns the ports of the bundle's Services, by the name of the Service.
func listServicePorts(b *bundles.Bundle) map[string]map[int32]bool {
	out := map[string]map[int32]bool{}
	for _, o := range b.Objects {
		if o.GroupVersionKind() != corev1.SchemeGroupVersion.WithKind("Service") {
			continue
		}
		var service corev1.Service
		if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &service) != nil {
			continue // rule object-unknown-field reports this
		}
		out[o.GetName()] = map[int32]bool{}
		for _, p := range service.Spec.Ports {
			out[o.GetName()][p.Port] = true
		}
	}
	return out
}
