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

// Profile decodes what a bundle says of how its operator is to be watched: the
// value of its property bellwether.dev/slo. It is the spec of an OperatorSLO
// without what only a fleet knows: operator, profile, team, criticality,
// runbookURL, alertLabels and alertAnnotations. The defaults of an OperatorSLO are filled in.
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
		s.Interval, s.Timeout = defaulted(s.Interval, 30*time.Second), defaulted(s.Timeout, 5*time.Second)
		if err := service(*s); err != nil {
			errs = append(errs, fmt.Errorf("service %q: %w", s.Name, err))
		}
	}
	if m := out.Monitor; m != nil {
		m.Interval = defaulted(m.Interval, 30*time.Second)
		errs = append(errs, monitor(m))
	}
	return out, errors.Join(errs...)
}

// monitor refuses what the API server would refuse in an object.
func monitor(m *v1alpha1.PodMetrics) error {
	m.Scheme = cmp.Or(m.Scheme, v1alpha1.ProbeHTTP)
	isHTTPS := m.Scheme == v1alpha1.ProbeHTTPS
	switch {
	case (m.Port == "") == (m.PortNumber == 0), m.Port != "" && len(validation.IsValidPortName(m.Port)) > 0,
		m.PortNumber < 0 || m.PortNumber > 65535:
		return errors.New("monitor: set the name of a port, or its number, and not both")
	case !within(m.Interval, 5*time.Second, time.Minute) || !path(m.Path):
		return errors.New("monitor: give it an interval from 5s to 1m, and a path that begins with /")
	case !isHTTPS && m.Scheme != v1alpha1.ProbeHTTP, m.TLS != nil && !isHTTPS:
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

// service refuses what the API server would refuse in an object.
func service(s v1alpha1.ProbedService) error {
	switch {
	case len(validation.IsDNS1035Label(s.Name)) > 0:
		return errors.New("its name must be a Service's")
	case s.Port < 1 || s.Port > 65535:
		return fmt.Errorf("%d is no port", s.Port)
	case !slices.Contains([]v1alpha1.ProbeScheme{v1alpha1.ProbeHTTP, v1alpha1.ProbeHTTPS, v1alpha1.ProbeTCP,
		v1alpha1.ProbeGRPC}, s.Scheme):
		return fmt.Errorf("scheme %q is none of http, https, tcp and grpc", s.Scheme)
	case s.Scheme == v1alpha1.ProbeHTTPS && s.TLS == nil:
		return errors.New("https needs tls: name the CA of the certificate, or set insecureSkipVerify")
	case s.TLS != nil && s.Scheme != v1alpha1.ProbeHTTPS && s.Scheme != v1alpha1.ProbeGRPC:
		return errors.New("tls is for https and grpc only")
	case s.Path != "" && s.Scheme != v1alpha1.ProbeHTTP && s.Scheme != v1alpha1.ProbeHTTPS || !path(s.Path):
		return errors.New("path must begin with /, and is for http and https only")
	case !within(s.Interval, 5*time.Second, time.Minute) ||
		!within(s.Timeout, 100*time.Millisecond, min(30*time.Second, s.Interval.Duration)):
		return errors.New("interval must be from 5s to 1m, and timeout from 100ms to 30s and no longer than interval")
	}
	return nil
}

func path(p string) bool {
	return p == "" || strings.HasPrefix(p, "/") && !strings.ContainsAny(p, " \t\n#")
}

func defaulted(d *metav1.Duration, to time.Duration) *metav1.Duration {
	if d != nil {
		return d
	}
	return &metav1.Duration{Duration: to}
}

func within(d *metav1.Duration, least, most time.Duration) bool {
	return d.Duration >= least && d.Duration <= most
}

// Effective is a spec over the profile of a bundle, as Profile returns it: what
// the spec names itself counts, and its without takes from the profile. That may
// name a probe there, as in probe:NAME. A spec with the profile None is itself.
func Effective(s, profile v1alpha1.OperatorSLOSpec) v1alpha1.OperatorSLOSpec {
	if s.Profile == v1alpha1.ProfileNone {
		return s
	}
	without := func(name string) bool { return slices.Contains(s.Without, name) }
	own := func(o v1alpha1.OwnSLI) string { return o.Name }
	service := func(o v1alpha1.ProbedService) string { return slo.Probe + o.Name }
	objective := func(o v1alpha1.SLOObjective) string { return o.SLI }
	out := *s.DeepCopy()
	out.Objectives = over(out.Objectives, profile.Objectives, objective, without)
	out.Own = over(out.Own, profile.Own, own, without)
	out.Services = over(out.Services, profile.Services, service, without)
	kind := func(l v1alpha1.CustomResourceLimit) string { return l.Kind }
	out.CustomResources = over(out.CustomResources, profile.CustomResources, kind, func(string) bool { return false })
	for _, sli := range profile.Without {
		if !without(sli) && !contains(s.Objectives, objective, sli) {
			out.Without = append(out.Without, sli)
		}
	}
	// What was only the profile's is gone, and rules know nothing of it.
	out.Without = slices.DeleteFunc(out.Without, func(name string) bool {
		return contains(profile.Own, own, name) || contains(profile.Services, service, name)
	})
	if out.Monitor == nil {
		out.Monitor = profile.Monitor
	}
	return out
}

// over appends to a list what a profile has, but for names that the list has
// already and those that are taken from the profile.
func over[T any](list, profile []T, name func(T) string, without func(string) bool) []T {
	for _, element := range profile {
		if !without(name(element)) && !contains(list, name, name(element)) {
			list = append(list, element)
		}
	}
	return list
}

func contains[T any](list []T, name func(T) string, wanted string) bool {
	return slices.ContainsFunc(list, func(element T) bool { return name(element) == wanted })
}
