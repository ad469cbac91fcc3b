// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/remedy"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/backups/archive"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// Taken is a backup that was written, read back and found complete.
type Taken struct {
	Manifest *archive.Manifest
	// Sum is the SHA-256 of the manifest.
	Sum      string
	Location string
	At       time.Time
}

// maxResources limits the list of resources in the status.
const maxResources = 100

// ReportTaken writes the status of a backup that is complete.
func ReportTaken(b *v1alpha1.OperatorBackup, taken Taken) {
	m := taken.Manifest
	b.Status = v1alpha1.OperatorBackupStatus{
		Conditions: b.Status.Conditions, Location: taken.Location, TakenAt: toMetaTime(m.TakenAt),
		VerifiedAt: toMetaTime(taken.At), Bundle: m.Bundle, Version: m.Version, Objects: m.Objects(),
		Bytes: m.Content.Bytes, Manifest: taken.Sum, Encrypted: m.Content.Encrypted,
	}
	for _, r := range m.Resources[:min(len(m.Resources), maxResources)] {
		b.Status.Resources = append(b.Status.Resources,
			v1alpha1.BackedUpResource{Name: r.Name(), Version: r.Version, Objects: r.Objects})
	}
	conditions.Summarize(&b.Status.Conditions, b.Generation, conditions.Summary{State: conditions.Current,
		Reason: v1alpha1.ReasonSucceeded, Message: fmt.Sprintf("%s of %s in %d bytes. The backup was read back and "+
			"is complete.", phrase.Count(m.Objects(), "object"), phrase.Count(len(m.Resources), "resource"),
			m.Content.Bytes)})
}

// toMetaTime converts a time for a status field.
func toMetaTime(t time.Time) *metav1.Time {
	at := metav1.NewTime(t)
	return &at
}

// ReportRunning writes the status of a backup that is being taken.
func ReportRunning(b *v1alpha1.OperatorBackup) {
	conditions.Summarize(&b.Status.Conditions, b.Generation, conditions.Summary{State: conditions.InProgress,
		Reason: v1alpha1.ReasonProgressing, Message: "The backup is being taken."})
}

// The limits of the time until a failed backup is tried again.
const (
	retryMin = 15 * time.Second
	retryMax = 10 * time.Minute
)

// ReportFailed writes the status of a backup that could not be taken, with advice for a person. It returns the time
// until the backup is tried again: the age of the backup, within limits.
func ReportFailed(b *v1alpha1.OperatorBackup, err error, now time.Time) time.Duration {
	reason := ReasonFor(err)
	message := phrase.Truncate(err.Error(), maxMessage) + ". " +
		remedy.Advice(reason, remedy.Agent, remedy.Names{Operator: b.Spec.Operator.Name})
	conditions.Summarize(&b.Status.Conditions, b.Generation, conditions.Summary{State: conditions.Stalled,
		Reason: reason, Message: strings.TrimSpace(message)})
	return min(max(now.Sub(b.CreationTimestamp.Time), retryMin), retryMax)
}

const maxMessage = 1024

// ErrNotInstalled means that the operator is not installed, so that its custom resources are not known.
var ErrNotInstalled = errors.New("the operator is not installed")

// ForbiddenError is a missing permission of the agent.
type ForbiddenError struct {
	// Operator is the name of the ManagedOperator.
	Operator string
	// Resources are the resources that the agent must not list, as plural.group.
	Resources []string
}

// Error implements error. It has the commands that grant the missing permissions.
func (e *ForbiddenError) Error() string {
	role := "bellwether-backup-" + e.Operator
	return fmt.Sprintf("the agent may not list %s. The owner of the cluster can permit it: `kubectl create "+
		"clusterrole %s --verb=get,list --resource=%s && kubectl label clusterrole %s %s=true`",
		phrase.First(e.Resources, 3), role, strings.Join(e.Resources, ","), role, v1alpha1.LabelAggregateToBackup)
}

// ReasonFor returns the reason for an error of a backup. An operator that is not installed is no failure: the backup
// waits.
func ReasonFor(err error) string {
	var forbidden *ForbiddenError
	switch {
	case errors.As(err, &forbidden), apierrors.IsForbidden(err):
		return v1alpha1.ReasonBackupForbidden
	case errors.Is(err, archive.ErrTooLarge):
		return v1alpha1.ReasonBackupTooLarge
	case errors.Is(err, archive.ErrDamaged), errors.Is(err, archive.ErrNoBackup):
		return v1alpha1.ReasonBackupDamaged
	case errors.Is(err, archive.ErrStore):
		return v1alpha1.ReasonBackupStoreUnavailable
	case errors.Is(err, ErrNotInstalled):
		return v1alpha1.ReasonWaiting
	default:
		return v1alpha1.ReasonBackupFailed
	}
}

// IsDone reports whether nothing remains to be done for a backup.
func IsDone(b *v1alpha1.OperatorBackup) bool { return IsVerified(b) }
