// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
)

// Labels and annotations with which Helm records the release of an object. Helm refuses to change an object that
// belongs to another release.
const (
	managedByLabel      = "app.kubernetes.io/managed-by"
	managedByHelm       = "Helm"
	ownerAnnotation     = "meta.helm.sh/release-name"
	namespaceAnnotation = "meta.helm.sh/release-namespace"
)

// InstallsCRDs reports whether the chart's CRDs are part of the release. It reads crds.enabled from the given values,
// or else from the values of the installed release; the default is true.
func (r Release) InstallsCRDs(given map[string]any) (bool, error) {
	c, err := r.newConfiguration()
	if err != nil {
		return false, err
	}
	installed, err := r.isInstalled(c)
	if err != nil {
		return false, err
	}
	values := []map[string]any{given}
	if installed {
		lastRelease, err := c.Releases.Last(r.Name)
		if err != nil {
			return false, fmt.Errorf("read release %s: %w", r.Name, err)
		}
		values = append(values, lastRelease.Config)
	}
	for _, v := range values {
		if enabled, err := chartutil.Values(v).PathValue("crds.enabled"); err == nil {
			return enabled == true, nil
		}
	}
	return true, nil
}

// FindCRDOwner returns the release of a CRD. It returns the zero value if the CRD has no release or does not exist.
func FindCRDOwner(ctx context.Context, c client.Reader, name string) (types.NamespacedName, error) {
	crd, err := getCRD(ctx, c, name)
	if err != nil || crd == nil {
		return types.NamespacedName{}, err
	}
	return readOwner(crd), nil
}

// readOwner returns the Helm release in the labels and annotations of a CRD; the zero value if there is none.
func readOwner(crd *unstructured.Unstructured) types.NamespacedName {
	if crd.GetLabels()[managedByLabel] != managedByHelm {
		return types.NamespacedName{}
	}
	annotations := crd.GetAnnotations()
	return types.NamespacedName{Namespace: annotations[namespaceAnnotation], Name: annotations[ownerAnnotation]}
}

// TakeCRDs makes existing CRDs part of the release, so that Helm upgrades them with the release. Such CRDs are from
// the folder crds of an earlier chart, from another release, or were applied without Helm. They get an annotation to
// keep them, so that a previous release does not delete them.
func (r Release) TakeCRDs(ctx context.Context, c client.Client, names ...string) error {
	for _, name := range names {
		crd, err := getCRD(ctx, c, name)
		if err != nil {
			return err
		}
		if crd == nil || readOwner(crd) == (types.NamespacedName{Namespace: r.Namespace, Name: r.Name}) {
			continue
		}
		before := crd.DeepCopy()
		setEntries(crd.GetLabels(), crd.SetLabels, map[string]string{managedByLabel: managedByHelm})
		setEntries(crd.GetAnnotations(), crd.SetAnnotations, map[string]string{ownerAnnotation: r.Name,
			namespaceAnnotation: r.Namespace, kube.ResourcePolicyAnno: kube.KeepPolicy})
		// Server-side apply would remove the fields that an earlier version of this program applied.
		if err := c.Patch(ctx, crd, client.MergeFrom(before), hub.FieldOwner); err != nil {
			return fmt.Errorf("make CRD %s part of release %s: %w", name, r.Name, err)
		}
	}
	return nil
}

// setEntries adds entries to the current map, and passes the result to setAll.
func setEntries(current map[string]string, setAll func(map[string]string), entries map[string]string) {
	if current == nil {
		current = map[string]string{}
	}
	for key, value := range entries {
		current[key] = value
	}
	setAll(current)
}

// getCRD returns a CRD; nil if it does not exist.
func getCRD(ctx context.Context, c client.Reader, name string) (*unstructured.Unstructured, error) {
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	err := c.Get(ctx, client.ObjectKey{Name: name}, crd)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // it does not exist
	}
	if err != nil {
		return nil, fmt.Errorf("get CRD %s: %w", name, err)
	}
	return crd, nil
}

// errMissing means that a CRD does not exist.
var errMissing = errors.New("the CRD does not exist")

// WaitForCRDs waits until the API server serves the CRDs. The timeout applies to each CRD.
func WaitForCRDs(ctx context.Context, c client.Reader, timeout time.Duration, names ...string) error {
	for _, name := range names {
		err := hub.Poll(ctx, timeout, func() (bool, error) {
			crd, err := getCRD(ctx, c, name)
			if err == nil && crd == nil {
				err = errMissing
			}
			return err == nil && isEstablished(crd), err
		})
		if err != nil {
			return fmt.Errorf("wait for CRD %s: %w", name, err)
		}
	}
	return nil
}

// isEstablished reports whether the API server serves the CRD.
func isEstablished(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == "Established" && m["status"] == "True" {
			return true
		}
	}
	return false
}
