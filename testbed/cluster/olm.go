// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/loopback"
	"github.com/bellwether-dev/bellwether/testbed/process"
)

// Names that OLM's own installation uses.
const (
	olmNamespace      = "olm"
	olmServiceAccount = "olm-operator-serviceaccount"
	olmClusterRole    = "system:controller:operator-lifecycle-manager"
)

// fastQPS is more than OLM ever sends.
const fastQPS = "500"

// crdLimit is generous because clusters start side by side on few cores.
const crdLimit = 5 * time.Minute

// InstallCRDs installs the CustomResourceDefinitions found in the given files and folders, and waits until they are
// served.
func (c *Cluster) InstallCRDs(paths ...string) error {
	_, err := envtest.InstallCRDs(c.RESTConfig(), envtest.CRDInstallOptions{
		Scheme:             runtime.NewScheme(), // no Go type of it converts between versions
		Paths:              paths,
		ErrorIfPathMissing: true,
		MaxTime:            crdLimit,
	})
	if err != nil {
		return fmt.Errorf("install CRDs on %s: %w", c.opts.Name, err)
	}
	return nil
}

// startOLM installs OLM as its manifests do, but for the operators themselves, which run as processes under the
// identity of OLM's ServiceAccount.
func (c *Cluster) startOLM(ctx context.Context) error {
	if err := c.InstallCRDs(c.opts.Binaries[build.OLMCRDs]); err != nil {
		return err
	}
	if err := c.createOLMObjects(ctx); err != nil {
		return err
	}
	kubeconfig, err := c.WriteKubeconfig(build.OLM, "system:serviceaccount:"+olmNamespace+":"+olmServiceAccount,
		"system:serviceaccounts", "system:serviceaccounts:"+olmNamespace, "system:authenticated")
	if err != nil {
		return err
	}
	operators, ctx := errgroup.WithContext(ctx)
	for _, name := range []string{build.OLM, build.OLMCatalog} {
		operators.Go(func() error { return c.startOLMOperator(ctx, name, kubeconfig) })
	}
	return operators.Wait()
}

func (c *Cluster) startOLMOperator(ctx context.Context, name, kubeconfig string) error {
	return loopback.OnFreePorts(ctx, 1, func(ports []int) error {
		metrics := loopback.Address(ports[0])
		env := []string{"KUBECONFIG=" + kubeconfig, "OPERATOR_NAMESPACE=" + olmNamespace, "OPERATOR_NAME=olm-operator"}
		if c.opts.Quick {
			env = append(env, build.ClientQPS+"="+fastQPS)
		}
		spec := process.Spec{
			Name: name,
			Path: c.opts.Binaries[name],
			Args: []string{"--kubeconfig", kubeconfig, "--metrics-bind-address", metrics},
			Env:  env,
		}
		return c.run(ctx, spec, componentLimit, func(ctx context.Context) error {
			return getOK(ctx, "http://"+metrics+"/readyz")
		})
	})
}

func (c *Cluster) createOLMObjects(ctx context.Context) error {
	known := runtime.NewScheme()
	if err := scheme.AddToScheme(known); err != nil {
		return fmt.Errorf("register types: %w", err)
	}
	if err := operatorsv1.AddToScheme(known); err != nil {
		return fmt.Errorf("register OLM types: %w", err)
	}
	api, err := client.New(c.RESTConfig(), client.Options{Scheme: known})
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	for _, object := range olmObjects() {
		if err := api.Create(ctx, object); err != nil {
			return fmt.Errorf("create %T %s: %w", object, object.GetName(), err)
		}
	}
	return nil
}

// olmObjects are the namespace, the rights and the configuration that OLM's installation brings.
func olmObjects() []client.Object {
	everything := []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}},
		{NonResourceURLs: []string{"*"}, Verbs: []string{"*"}},
	}
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	return []client.Object{
		&corev1.Namespace{ObjectMeta: named(olmNamespace)},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: olmServiceAccount, Namespace: olmNamespace}},
		&rbacv1.ClusterRole{ObjectMeta: named(olmClusterRole), Rules: everything},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: named("olm-operator-binding-olm"),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: olmClusterRole},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: olmServiceAccount,
				Namespace: olmNamespace}},
		},
		&operatorsv1.OLMConfig{ObjectMeta: named("cluster")},
	}
}
