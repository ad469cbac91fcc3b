// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// refusedPause is between two attempts to have a server take files that it refused.
const refusedPause = 2 * time.Second

// follower brings objects of the hub to a server as files, as a sidecar does that reloads the server when they change.
type follower struct {
	// server is its name in messages.
	server string
	// label selects the objects; its value is true.
	label    string
	informer func(informers.SharedInformerFactory) cache.SharedIndexInformer
	// files makes the files of the objects.
	files func(objects []any) (map[string][]byte, error)
	// load has the server take the files, or says why it does not. It is not called without a file.
	load func(ctx context.Context, files map[string][]byte) error
	say  func(format string, args ...any)

	stop context.CancelFunc
	done chan struct{}
}

// start follows the objects until end is called.
func (f *follower) start(ctx context.Context, client kubernetes.Interface) error {
	ctx, f.stop = context.WithCancel(context.WithoutCancel(ctx))
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = f.label + "=true" }))
	informer := f.informer(factory)
	changed := make(chan struct{}, 1)
	note := func(any) {
		select {
		case changed <- struct{}{}:
		default: // what is there already will see this change as well
		}
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: note, UpdateFunc: func(_, after any) { note(after) }, DeleteFunc: note,
	}); err != nil {
		f.stop()
		return fmt.Errorf("follow the files of %s: %w", f.server, err)
	}
	f.done = make(chan struct{})
	factory.StartWithContext(ctx)
	go func() {
		defer close(f.done)
		defer factory.Shutdown()
		f.follow(ctx, informer.GetStore(), changed)
	}()
	return nil
}

// end returns when nothing is followed any more.
func (f *follower) end() {
	f.stop()
	<-f.done
}

// follow loads the files each time they changed. Files that are refused are tried again, since a fleet that is starting
// may be short of file handles or time; what is wrong is said once.
func (f *follower) follow(ctx context.Context, store cache.Store, changed <-chan struct{}) {
	var retry <-chan time.Time
	var have map[string][]byte
	var complaint string
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-retry:
		}
		retry = nil
		want, err := f.files(store.List())
		if err == nil && maps.EqualFunc(want, have, bytes.Equal) {
			continue
		}
		if err == nil {
			err = f.load(ctx, want)
		}
		if err == nil {
			have, complaint = want, ""
			continue
		}
		if text := err.Error(); text != complaint && ctx.Err() == nil {
			f.say("%s: %s", f.server, text)
			complaint = text
		}
		retry = time.After(refusedPause)
	}
}
