// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build long

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/testbed/chaos"
	echov1alpha1 "github.com/bellwether-dev/bellwether/testbed/echo/api/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/platform"
)

const (
	// userNamespace is where users keep their custom resources on each cluster.
	userNamespace = "chaos-users"
	userObjects   = 6
	userFinalizer = "e2e.bellwether.dev/keep"
	// userPause is between two writes, and userTimeout bounds one.
	userPause   = 300 * time.Millisecond
	userTimeout = 5 * time.Second
)

// user writes the custom resources of a cluster, and remembers what the API server said is stored.
type user struct {
	cluster string
	client  client.Client
	random  *rand.Rand
	done    sync.WaitGroup
	// stored is not touched by others while work runs.
	stored chaos.Objects
	writes int
	faults []string
}

// newUser creates EchoServers on a cluster. One of them has a server, and all have what custom resources can have.
func newUser(t *testing.T, cluster string, seed uint64) *user {
	t.Helper()
	c, err := shared.Client(cluster, platform.Scheme())
	if err != nil {
		t.Fatal(err)
	}
	u := &user{cluster: cluster, client: c, random: rand.New(rand.NewPCG(seed, 1)), stored: chaos.Objects{}}
	t.Cleanup(func() { u.leave(t) })
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: userNamespace}}
	if err := c.Create(t.Context(), namespace); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	for i := range userObjects {
		o := echoServer(fmt.Sprintf("echo-%d", i))
		o.SetLabels(map[string]string{"team": fmt.Sprintf("team-%d", u.random.IntN(3))})
		o.SetAnnotations(map[string]string{"example.com/note": fmt.Sprint(u.random.Uint64())})
		o.SetFinalizers([]string{userFinalizer})
		o.Object["spec"] = u.spec(int64(max(1-i, 0)))
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		u.stored[o.GetName()] = o
	}
	return u
}

func echoServer(name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(echov1alpha1.GroupVersion.WithKind("EchoServer"))
	o.SetNamespace(userNamespace)
	o.SetName(name)
	return o
}

// spec draws one. The API server drops uppercase where the CRD does not have it.
func (u *user) spec(replicas int64) map[string]any {
	return map[string]any{"message": fmt.Sprintf("message %d", u.random.Uint64()), "replicas": replicas,
		"uppercase": u.random.IntN(2) == 0}
}

// work writes until ctx ends, and finishes the last write.
func (u *user) work(ctx context.Context) {
	u.done.Go(func() {
		for ctx.Err() == nil {
			u.write(context.WithoutCancel(ctx), fmt.Sprintf("echo-%d", u.random.IntN(userObjects)))
			select {
			case <-ctx.Done():
			case <-time.After(userPause): // impatient: users write now and then
			}
		}
	})
}

// write changes the spec of one object. An API server that does not answer may have stored it or not, so the write is
// tried until it is known to be stored.
func (u *user) write(ctx context.Context, name string) {
	was := u.stored[name]
	replicas, _, _ := unstructured.NestedInt64(was.Object, "spec", "replicas")
	spec := u.spec(replicas)
	read := was.DeepCopy()
	err := wait.PollUntilContextTimeout(ctx, userPause, chaosPatience, true, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, userTimeout) // impatient: the write is tried again
		defer cancel()
		next := read.DeepCopy()
		next.Object["spec"] = spec
		err := u.client.Update(ctx, next)
		switch {
		case err == nil:
			u.stored[name] = next
			u.writes++
			return true, nil
		case !apierrors.IsConflict(err):
			return false, nil // the API server does not answer
		}
		// The operator wrote the status, or an earlier attempt was stored after all.
		now := echoServer(name)
		if u.client.Get(ctx, client.ObjectKeyFromObject(now), now) == nil {
			read = now
		}
		return false, nil
	})
	if err != nil {
		u.faults = append(u.faults, fmt.Sprintf("write %s: %v", name, err))
	}
}

// finds fails the test for each difference between what is stored and what the user was told, and unless the operator
// works on every object as this version of it.
func (u *user) finds(t *testing.T, version string) {
	t.Helper()
	got := chaos.Objects{}
	last := ""
	err := wait.PollUntilContextTimeout(t.Context(), look, patience, true, func(ctx context.Context) (bool, error) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(echov1alpha1.GroupVersion.WithKind("EchoServerList"))
		if err := u.client.List(ctx, list, client.InNamespace(userNamespace)); err != nil {
			last = err.Error()
			return false, nil //nolint:nilerr // the API server does not answer yet
		}
		clear(got)
		for i := range list.Items {
			got[list.Items[i].GetName()] = &list.Items[i]
			if by := workedOnBy(&list.Items[i]); by != version {
				last = fmt.Sprintf("version %s of the operator worked on %s, want %s", by, list.Items[i].GetName(),
					version)
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		t.Errorf("EchoServers of %s: %s", u.cluster, last)
	}
	for _, fault := range append(chaos.Lost(u.stored, got), u.faults...) {
		t.Errorf("EchoServers of %s: %s", u.cluster, fault)
	}
	t.Logf("%s: compared %d EchoServers after %d writes", u.cluster, len(got), u.writes)
	if u.writes == 0 {
		t.Errorf("nothing was written on %s", u.cluster)
	}
}

// workedOnBy is the version of the operator whose status is about the object as it is now.
func workedOnBy(o *unstructured.Unstructured) string {
	observed, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	version, _, _ := unstructured.NestedString(o.Object, "status", "version")
	if observed != o.GetGeneration() {
		return "no"
	}
	return version
}

// leave removes the user's objects.
func (u *user) leave(t *testing.T) {
	t.Helper()
	u.done.Wait()
	ctx := context.WithoutCancel(t.Context())
	err := wait.PollUntilContextTimeout(ctx, look, patience, true, func(ctx context.Context) (bool, error) {
		left := 0
		for name := range u.stored {
			o := echoServer(name)
			if err := u.client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
				if !apierrors.IsNotFound(err) {
					left++
				}
				continue
			}
			left++
			o.SetFinalizers(nil)
			if err := u.client.Update(ctx, o); err == nil {
				_ = u.client.Delete(ctx, o)
			}
		}
		return left == 0, nil
	})
	if err != nil {
		t.Errorf("remove EchoServers of %s: %v", u.cluster, err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: userNamespace}}
	if err := client.IgnoreNotFound(u.client.Delete(ctx, namespace)); err != nil {
		t.Error(err)
	}
}
