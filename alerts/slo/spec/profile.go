// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	kjson "sigs.k8s.io/json"

	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Profile decodes the profile of an operator in its bundle: the value of the property bellwether.dev/slo. It
// is the spec of an OperatorSLO without the fields that depend on the fleet: operator, profile, team,
// criticality, runbookURL, alertLabels and alertAnnotations. Profile fills in the defaults of an OperatorSLO.
func Profile(value json.RawMessage) (v1alpha1.OperatorSLOSpec, error) {
	var out v1alpha1.OperatorSLOSpec
	strict, err := kjson.UnmarshalStrict(value, &out)
	if err := errors.Join(append(strict, err)...); err != nil {
		return out, fmt.Errorf("decode: %w", err)
	}
	if out.Operator != "" || out.Profile != "" || out.Team != "" || out.Criticality != "" || out.RunbookURL != "" ||
		len(out.AlertLabels) > 0 || len(out.AlertAnnotations) > 0 {
		return out, errors.New("a bundle cannot set operator, profile, team, criticality, runbookURL, alertLabels " +
			"and alertAnnotations; set them in an OperatorSLO")
	}
	_, err = Operator("", out)
	errs := []error{err}
	for i := range out.Services {
		s := &out.Services[i]
		s.Scheme = cmp.Or(s.Scheme, v1alpha1.ProbeHTTP)
		s.Interval, s.Timeout = applyDefault(s.Interval, 30*time.Second), applyDefault(s.Timeout, 5*time.Second)
		if err := checkService(*s); err != nil {
			errs = append(errs, fmt.Errorf("service %q: %w", s.Name, err))
		}
	}
	if m := out.Monitor; m != nil {
		m.Interval = applyDefault(m.Interval, 30*time.Second)
		errs = append(errs, checkMonitor(m))
	}
	return out, errors.Join(errs...)
}

// checkMonitor fills in the default scheme and returns an error
// for values that the API server would refuse in an object.
func checkMonitor(m *v1alpha1.PodMetrics) error {
	m.Scheme = cmp.Or(m.Scheme, v1alpha1.ProbeHTTP)
	isHTTPS := m.Scheme == v1alpha1.ProbeHTTPS
	hasOnePort := (m.Port == "") != (m.PortNumber == 0)
	hasInvalidName := m.Port != "" && len(validation.IsValidPortName(m.Port)) > 0
	switch {
	case !hasOnePort || hasInvalidName || m.PortNumber < 0 || m.PortNumber > 65535:
		return errors.New("monitor: set the name of a port, or its number, and not both")
	case !isWithin(m.Interval, 5*time.Second, time.Minute) || !isPath(m.Path):
		return errors.New("monitor: give it an interval from 5s to 1m, and a path that begins with /")
	case !isHTTPS && (m.Scheme != v1alpha1.ProbeHTTP || m.TLS != nil):
		return errors.New("monitor: scheme is http or https, and tls is for https only")
	}
	var errs []error
	for _, r := range m.MetricRelabelings {
		if _, err := regexp.Compile("^(?s:" + r.Regex + ")$"); err != nil {
			errs = append(errs, fmt.Errorf("monitor: metricRelabelings: %q is no regular expression: %w", r.Regex, err))
		}
	}
	return errors.Join(errs...)
}

// checkService returns an error for values that the API server would refuse in an object.
func checkService(s v1alpha1.ProbedService) error {
	isWeb := s.Scheme == v1alpha1.ProbeHTTP || s.Scheme == v1alpha1.ProbeHTTPS
	hasUnusedPath := s.Path != "" && !isWeb
	switch {
	case len(validation.IsDNS1035Label(s.Name)) > 0:
		return errors.New("its name must be a valid name of a Service")
	case s.Port < 1 || s.Port > 65535:
		return fmt.Errorf("%d is no port", s.Port)
	case !slices.Contains([]v1alpha1.ProbeScheme{v1alpha1.ProbeHTTP, v1alpha1.ProbeHTTPS, v1alpha1.ProbeTCP,
		v1alpha1.ProbeGRPC}, s.Scheme):
		return fmt.Errorf("scheme %q is none of http, https, tcp and grpc", s.Scheme)
	case s.Scheme == v1alpha1.ProbeHTTPS && s.TLS == nil:
		return errors.New("https needs tls: name the CA of the certificate, or set insecureSkipVerify")
	case s.TLS != nil && s.Scheme != v1alpha1.ProbeHTTPS && s.Scheme != v1alpha1.ProbeGRPC:
		return errors.New("tls is for https and grpc only")
	case hasUnusedPath || !isPath(s.Path):
		return errors.New("path must begin with /, and is for http and https only")
	case !isWithin(s.Interval, 5*time.Second, time.Minute) ||
		!isWithin(s.Timeout, 100*time.Millisecond, min(30*time.Second, s.Interval.Duration)):
		return errors.New("interval must be from 5s to 1m, and timeout from 100ms to 30s and no longer than interval")
	}
	return nil
}

// isPath reports whether the path is empty or valid.
func isPath(p string) bool {
	return p == "" || strings.HasPrefix(p, "/") && !strings.ContainsAny(p, " \t\n#")
}

func applyDefault(d *metav1.Duration, defaultValue time.Duration) *metav1.Duration {
	if d != nil {
		return d
	}
	return &metav1.Duration{Duration: defaultValue}
}

// isWithin reports whether a duration is within the limits, inclusive.
func isWithin(d *metav1.Duration, minimum, maximum time.Duration) bool {
	return d.Duration >= minimum && d.Duration <= maximum
}

// Effective returns a spec with missing values from the profile of a bundle, as Profile returns it.
// Values in the spec itself take precedence, and its field without removes values from the profile;
// it may name a probe, as in probe:NAME. A spec with the profile None is returned unchanged.
func Effective(s, profile v1alpha1.OperatorSLOSpec) v1alpha1.OperatorSLOSpec {
	if s.Profile == v1alpha1.ProfileNone {
		return s
	}
	isExcluded := func(name string) bool { return slices.Contains(s.Without, name) }
	getOwnName := func(o v1alpha1.OwnSLI) string { return o.Name }
	getServiceSLI := func(o v1alpha1.ProbedService) string { return slo.Probe + o.Name }
	getObjectiveSLI := func(o v1alpha1.SLOObjective) string { return o.SLI }
	out := *s.DeepCopy()
	out.Objectives = mergeLists(out.Objectives, profile.Objectives, getObjectiveSLI, isExcluded)
	out.Own = mergeLists(out.Own, profile.Own, getOwnName, isExcluded)
	out.Services = mergeLists(out.Services, profile.Services, getServiceSLI, isExcluded)
	getLimitKind := func(l v1alpha1.CustomResourceLimit) string { return l.Kind }
	out.CustomResources = mergeLists(out.CustomResources, profile.CustomResources, getLimitKind,
		func(string) bool { return false })
	for _, sli := range profile.Without {
		if !isExcluded(sli) && !hasName(s.Objectives, getObjectiveSLI, sli) {
			out.Without = append(out.Without, sli)
		}
	}
	// SLIs that existed only in the profile are already removed, and the rules do not define them.
	out.Without = slices.DeleteFunc(out.Without, func(name string) bool {
		return hasName(profile.Own, getOwnName, name) || hasName(profile.Services, getServiceSLI, name)
	})
	if out.Monitor == nil {
		out.Monitor = profile.Monitor
	}
	return out
}

// mergeLists appends the elements of a profile to a list, except elements
// whose name the list already has and elements that are excluded.
func mergeLists[T any](list, profile []T, name func(T) string, isExcluded func(string) bool) []T {
	for _, element := range profile {
		if !isExcluded(name(element)) && !hasName(list, name, name(element)) {
			list = append(list, element)
		}
	}
	return list
}

// hasName reports whether an element of the list has the wanted name.
func hasName[T any](list []T, name func(T) string, wanted string) bool {
	return slices.ContainsFunc(list, func(element T) bool { return name(element) == wanted })
}
