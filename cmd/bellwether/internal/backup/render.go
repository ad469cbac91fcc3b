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
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// BuildBackupTable returns the table of backup list.
func BuildBackupTable(list []v1alpha1.OperatorBackup, l term.Listing) *term.Table {
	t := &term.Table{Header: []string{"CLUSTER", "NAME", "STATE", "SIZE", "AGE"}}
	if l.Wide {
		t.Header = append(t.Header, "TRIGGER", "VERSION", "OBJECTS", "LOCATION", "MESSAGE")
	}
	for i := range list {
		b := &list[i]
		row := []term.Cell{{Text: term.DashIfEmpty(b.Labels[v1alpha1.LabelCluster])}, {Text: b.Name},
			term.Health(b.Status.Conditions), {Text: formatSize(b.Status.Bytes)},
			{Text: term.Age(l.Now, b.CreationTimestamp)}}
		if l.Wide {
			row = append(row, term.PlainCells(string(b.Spec.Trigger), term.DashIfEmpty(b.Status.Version),
				fmt.Sprint(b.Status.Objects), term.DashIfEmpty(b.Status.Location),
				phrase.OneLine(term.Headline(b.Status.Conditions)))...)
		}
		t.Add(row...)
	}
	return t
}

// formatSize returns a number of bytes with a binary unit, rounded down.
func formatSize(bytes int64) string {
	if bytes < 1<<10 {
		return fmt.Sprint(bytes)
	}
	unit := int64(1 << 10)
	for bytes/unit >= 1<<10 {
		unit <<= 10
	}
	return resource.NewQuantity(bytes/unit*unit, resource.BinarySI).String()
}

// RenderBackup returns the text of backup show: the details of a backup.
func RenderBackup(b *v1alpha1.OperatorBackup, now time.Time, s term.Style) string {
	var out strings.Builder
	facts := &term.Table{Wrap: true}
	addFact := func(title, value string) { facts.Add(term.PlainCells(title+":", term.DashIfEmpty(value))...) }
	facts.Add(term.Cell{Text: "Backup:"}, term.Strong.Cell(b.Name))
	facts.Add(term.Cell{Text: "State:"}, term.Health(b.Status.Conditions))
	addFact("Cluster", b.Labels[v1alpha1.LabelCluster])
	addFact("Operator", b.Spec.Operator.Namespace+"/"+b.Spec.Operator.Name)
	addFact("Trigger", string(b.Spec.Trigger))
	if u := b.Spec.Upgrade; u != nil {
		addFact("Before the upgrade", u.From+" to "+u.To)
	}
	addFact("Bundle", b.Status.Bundle)
	addFact("Location", b.Status.Location)
	addFact("Taken", formatTime(b.Status.TakenAt))
	addFact("Verified", formatTime(b.Status.VerifiedAt))
	addFact("Objects", fmt.Sprint(b.Status.Objects))
	addFact("Size", formatSize(b.Status.Bytes))
	addFact("Encrypted", fmt.Sprint(b.Status.Encrypted))
	addFact("SHA-256 of manifest", b.Status.Manifest)
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

// formatTime returns a time in UTC; empty if t is nil.
func formatTime(t *metav1.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// maxFields is the number of fields that are printed for one object.
const maxFields = 8

// FormatResult returns a line about one object of a restore: what was done and which fields differ. The line is empty
// if the object needs no change and no field differs.
func FormatResult(r restore.Result, dryRun bool) string {
	var parts []string
	addPart := func(format string, fields []string) {
		if len(fields) > 0 {
			parts = append(parts, fmt.Sprintf(format, phrase.First(fields, maxFields)))
		}
	}
	outcome := map[restore.Action]string{restore.Create: "created", restore.Fill: "filled in", restore.Fail: "failed",
		restore.None: "unchanged"}[r.Action]
	if dryRun {
		outcome = map[restore.Action]string{restore.Create: "to create", restore.Fill: "to fill in",
			restore.Fail: "would fail", restore.None: "unchanged"}[r.Action]
	}
	if r.Problem != "" {
		parts = append(parts, r.Problem)
	}
	addPart("brings back %s", r.Fields)
	addPart("keeps the present value of %s", r.Kept)
	addPart("not accepted by the cluster's CustomResourceDefinition: %s", r.Pruned)
	addPart("without its owner %s, which does not exist", r.DroppedOwners)
	if r.Action == restore.None && len(parts) == 0 {
		return ""
	}
	line := fmt.Sprintf("%s: %s", r.Object(), outcome)
	if len(parts) > 0 {
		line += "; " + strings.Join(parts, "; ")
	}
	return line
}

// FormatReport returns a summary of a restore.
func FormatReport(r restore.Report) string {
	words := []string{"created", "filled in", "brought back"}
	if r.DryRun {
		words = []string{"to create", "to fill in", "to bring back"}
	}
	return fmt.Sprintf("%s: %d %s, %d %s (%s %s), %d unchanged, %d failed. "+
		"%s kept a value that differs from the backup.\n", phrase.Count(r.Objects, "object"), r.Created, words[0],
		r.Filled, words[1], phrase.Count(r.Fields, "field"), words[2], r.Unchanged, r.Failed,
		phrase.Count(r.Kept, "field"))
}
