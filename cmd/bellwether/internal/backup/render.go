// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/backups/restore"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/phrase"
)

// Backups is the table of backups.
func Backups(list []v1alpha1.OperatorBackup, l term.Listing) *term.Table {
	t := &term.Table{Header: []string{"CLUSTER", "NAME", "STATE", "SIZE", "AGE"}}
	if l.Wide {
		t.Header = append(t.Header, "TRIGGER", "VERSION", "OBJECTS", "LOCATION", "MESSAGE")
	}
	for i := range list {
		b := &list[i]
		row := []term.Cell{{Text: term.OrDash(b.Labels[v1alpha1.LabelCluster])}, {Text: b.Name},
			term.Health(b.Status.Conditions), {Text: size(b.Status.Bytes)},
			{Text: term.Age(l.Now, b.CreationTimestamp)}}
		if l.Wide {
			row = append(row, term.PlainCells(string(b.Spec.Trigger), term.OrDash(b.Status.Version),
				fmt.Sprint(b.Status.Objects), term.OrDash(b.Status.Location),
				phrase.OneLine(term.Headline(b.Status.Conditions)))...)
		}
		t.Add(row...)
	}
	return t
}

func size(bytes int64) string {
	if bytes < 1<<10 {
		return fmt.Sprint(bytes)
	}
	unit := int64(1 << 10)
	for bytes/unit >= 1<<10 {
		unit <<= 10
	}
	return resource.NewQuantity(bytes/unit*unit, resource.BinarySI).String()
}

// Backup is the details of a backup.
func Backup(b *v1alpha1.OperatorBackup, now time.Time, s term.Style) string {
	var out strings.Builder
	facts := &term.Table{Wrap: true}
	add := func(what, value string) { facts.Add(term.PlainCells(what+":", term.OrDash(value))...) }
	facts.Add(term.Cell{Text: "Backup:"}, term.Strong.Cell(b.Name))
	facts.Add(term.Cell{Text: "State:"}, term.Health(b.Status.Conditions))
	add("Cluster", b.Labels[v1alpha1.LabelCluster])
	add("Operator", b.Spec.Operator.Namespace+"/"+b.Spec.Operator.Name)
	add("Trigger", string(b.Spec.Trigger))
	if u := b.Spec.Upgrade; u != nil {
		add("Before the upgrade", u.From+" to "+u.To)
	}
	add("Bundle", b.Status.Bundle)
	add("Location", b.Status.Location)
	add("Taken", clock(b.Status.TakenAt))
	add("Verified", clock(b.Status.VerifiedAt))
	add("Objects", fmt.Sprint(b.Status.Objects))
	add("Size", size(b.Status.Bytes))
	add("Encrypted", fmt.Sprint(b.Status.Encrypted))
	add("SHA-256 of manifest", b.Status.Manifest)
	out.WriteString(facts.Render(s))
	term.WriteConditions(&out, b.Status.Conditions, now, s)
	if len(b.Status.Resources) > 0 {
		t := &term.Table{Header: []string{"RESOURCE", "STORAGE VERSION", "OBJECTS"}, Wrap: true}
		for _, r := range b.Status.Resources {
			t.Add(term.PlainCells(r.Name, r.Version, fmt.Sprint(r.Objects))...)
		}
		out.WriteByte('\n')
		out.WriteString(t.Render(s))
	}
	return out.String()
}

func clock(at *metav1.Time) string {
	if at == nil {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}

// maxFields is how many fields of one object are printed.
const maxFields = 8

// Result is what a restore did with one object; empty if that is not worth a line.
func Result(r restore.Result, dryRun bool) string {
	var parts []string
	say := func(format string, fields []string) {
		if len(fields) > 0 {
			parts = append(parts, fmt.Sprintf(format, phrase.First(fields, maxFields)))
		}
	}
	verb := map[restore.Action]string{restore.Create: "created", restore.Fill: "filled in", restore.Fail: "failed",
		restore.None: "unchanged"}[r.Action]
	if dryRun {
		verb = map[restore.Action]string{restore.Create: "to create", restore.Fill: "to fill in",
			restore.Fail: "would fail", restore.None: "unchanged"}[r.Action]
	}
	if r.Problem != "" {
		parts = append(parts, r.Problem)
	}
	say("brings back %s", r.Fields)
	say("keeps the present value of %s", r.Kept)
	say("not accepted by the cluster's CustomResourceDefinition: %s", r.Pruned)
	say("without its owner %s, which does not exist", r.DroppedOwners)
	if r.Action == restore.None && len(parts) == 0 {
		return ""
	}
	line := fmt.Sprintf("%s: %s", r.Object(), verb)
	if len(parts) > 0 {
		line += "; " + strings.Join(parts, "; ")
	}
	return line
}

// Report is the end of a restore in a few lines.
func Report(r restore.Report) string {
	words := []string{"created", "filled in", "brought back"}
	if r.DryRun {
		words = []string{"to create", "to fill in", "to bring back"}
	}
	return fmt.Sprintf("%s: %d %s, %d %s (%s %s), %d unchanged, %d failed. "+
		"%s kept a value that differs from the backup.\n", phrase.Count(r.Objects, "object"), r.Created, words[0],
		r.Filled, words[1], phrase.Count(r.Fields, "field"), words[2], r.Unchanged, r.Failed,
		phrase.Count(r.Kept, "field"))
}
