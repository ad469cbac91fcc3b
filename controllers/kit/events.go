// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/phrase"
)

// maxNote is the API's limit of an Event's note. The API server refuses a longer one.
const maxNote = 1024

// Emit emits an Event about an object. Its type follows from the reason: see conditions.EventType. The note is cut at
// the API's limit.
func Emit(to events.EventRecorder, about runtime.Object, reason, action, format string, args ...any) {
	emit(to, about, conditions.EventType(reason), reason, action, fmt.Sprintf(format, args...))
}

func emit(to events.EventRecorder, about runtime.Object, eventType, reason, action, note string) {
	to.Eventf(about, nil, eventType, reason, action, "%s", phrase.Truncate(note, maxNote))
}
