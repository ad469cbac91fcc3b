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

// maxLog limits how many bytes of the log of a container are read.
const maxLog = 4 << 20

// findDenials reports requests that RBAC denied as problems. It finds them in the logs of the pods and in the Events of
// the namespace, so it cannot find denials that an operator does not log. A log that cannot be read becomes a note.
func (t *trial) findDenials(ctx context.Context) (string, error) {
	var events corev1.EventList
	if err := t.List(ctx, &events, client.InNamespace(t.namespace)); err != nil {
		return "", fmt.Errorf("list Events: %w", err)
	}
	var found []Denial
	for _, e := range events.Items {
		found = append(found, parseDenials(e.Message, fmt.Sprintf("Event of %s %s", e.InvolvedObject.Kind,
			e.InvolvedObject.Name))...)
	}
	var pods corev1.PodList
	if err := t.List(ctx, &pods, client.InNamespace(t.namespace)); err != nil {
		return "", fmt.Errorf("list pods: %w", err)
	}
	logs, unread := 0, []string{}
	for _, p := range pods.Items {
		if p.Labels[labelStub] == "true" {
			continue // a stub runs no program, and has no log
		}
		for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
			text, err := t.kube.CoreV1().Pods(t.namespace).GetLogs(p.Name,
				&corev1.PodLogOptions{Container: c.Name, LimitBytes: ptr.To[int64](maxLog)}).DoRaw(ctx)
			if err != nil {
				unread = append(unread, fmt.Sprintf("%s of pod %s (%v)", c.Name, p.Name, err))
				continue
			}
			logs++
			found = append(found, parseDenials(string(text),
				fmt.Sprintf("log of pod %s, container %s", p.Name, c.Name))...)
		}
	}
	if len(unread) > 0 {
		t.report.addNote("These logs could not be read, so denials in them are not known: %s.",
			strings.Join(unread, ", "))
	}
	t.report.Denials = removeDuplicates(found)
	for _, d := range t.report.Denials {
		t.report.Problems = append(t.report.Problems, fmt.Sprintf("RBAC denied a request: %s (%s)", d, d.Source))
	}
	if len(t.report.Denials) > 0 {
		return fmt.Sprintf("RBAC denied %d kinds of requests", len(t.report.Denials)), nil
	}
	return fmt.Sprintf("no denied request in %d Events and in the logs of %d containers", len(events.Items), logs), nil
}

// denialPattern matches the message of the API server for a request that RBAC denied. The quotes are escaped if the
// message is in a string of a structured log.
var denialPattern = regexp.MustCompile(`is forbidden: User \\*"([^"\\]+)\\*" cannot (\S+) ` +
	`(?:resource \\*"([^"\\]+)\\*" in API group \\*"([^"\\]*)\\*"|path \\*"([^"\\]+)\\*")` +
	`(?: (in the namespace) \\*"([^"\\]+)\\*"| (at the cluster scope))?`)

// parseDenials returns the denied requests in a text. It is pure.
func parseDenials(text, source string) []Denial {
	var out []Denial
	for _, m := range denialPattern.FindAllStringSubmatch(text, -1) {
		d := Denial{User: m[1], Verb: m[2], Resource: m[3] + m[5], Group: m[4], Source: source, Scope: m[8]}
		if m[7] != "" {
			d.Scope = m[6] + " " + m[7]
		}
		out = append(out, d)
	}
	return out
}

// removeDuplicates keeps the first of the denials that differ only in their source.
func removeDuplicates(denials []Denial) []Denial {
	var out []Denial
	for _, d := range denials {
		if !slices.ContainsFunc(out, func(have Denial) bool { have.Source = d.Source; return have == d }) {
			out = append(out, d)
		}
	}
	return out
}
