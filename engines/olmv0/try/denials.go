// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package try

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxLog bounds what is read of the log of a container.
const maxLog = 4 << 20

// findDenials looks for requests that RBAC denied, in the logs of the pods and in the
// Events of the namespace. An operator that does not log its errors hides them.
func (t *trial) findDenials(ctx context.Context) (string, error) {
	var events corev1.EventList
	if err := t.List(ctx, &events, client.InNamespace(t.namespace)); err != nil {
		return "", fmt.Errorf("list Events: %w", err)
	}
	var found []Denial
	for _, e := range events.Items {
		found = append(found, denials(e.Message, fmt.Sprintf("Event of %s %s", e.InvolvedObject.Kind,
			e.InvolvedObject.Name))...)
	}
	var pods corev1.PodList
	if err := t.List(ctx, &pods, client.InNamespace(t.namespace)); err != nil {
		return "", fmt.Errorf("list pods: %w", err)
	}
	logs, unread := 0, []string{}
	for _, p := range pods.Items {
		if p.Labels[labelStub] == "true" {
			continue
		}
		for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
			text, err := t.pods.CoreV1().Pods(t.namespace).GetLogs(p.Name,
				&corev1.PodLogOptions{Container: c.Name, LimitBytes: ptr.To[int64](maxLog)}).DoRaw(ctx)
			if err != nil {
				unread = append(unread, fmt.Sprintf("%s of pod %s (%v)", c.Name, p.Name, err))
				continue
			}
			logs++
			found = append(found, denials(string(text), fmt.Sprintf("log of pod %s, container %s", p.Name, c.Name))...)
		}
	}
	if len(unread) > 0 {
		t.report.note("These logs could not be read, so denials in them are not known: %s.", strings.Join(unread, ", "))
	}
	t.report.Denials = distinct(found)
	for _, d := range t.report.Denials {
		t.report.Problems = append(t.report.Problems, fmt.Sprintf("RBAC denied a request: %s (%s)", d, d.Source))
	}
	if len(t.report.Denials) > 0 {
		return fmt.Sprintf("RBAC denied %d kinds of requests", len(t.report.Denials)), nil
	}
	return fmt.Sprintf("no denied request in %d Events and in the logs of %d containers", len(events.Items), logs), nil
}

// denied is what the API server says when RBAC denies a request. The quotes are escaped
// where the message is in a string of a structured log.
var denied = regexp.MustCompile(`is forbidden: User \\*"([^"\\]+)\\*" cannot (\S+) ` +
	`(?:resource \\*"([^"\\]+)\\*" in API group \\*"([^"\\]*)\\*"|path \\*"([^"\\]+)\\*")` +
	`(?: (in the namespace) \\*"([^"\\]+)\\*"| (at the cluster scope))?`)

// denials are the denied requests that a text tells of. It is pure.
func denials(text, source string) []Denial {
	var out []Denial
	for _, m := range denied.FindAllStringSubmatch(text, -1) {
		d := Denial{User: m[1], Verb: m[2], Resource: m[3] + m[5], Group: m[4], Source: source, Scope: m[8]}
		if m[7] != "" {
			d.Scope = m[6] + " " + m[7]
		}
		out = append(out, d)
	}
	return out
}

// distinct keeps the first of denials that differ at most in their source.
func distinct(in []Denial) []Denial {
	var out []Denial
	for _, d := range in {
		if !slices.ContainsFunc(out, func(have Denial) bool { have.Source = d.Source; return have == d }) {
			out = append(out, d)
		}
	}
	return out
}
