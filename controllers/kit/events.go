// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"fmt"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/bellwether-dev/bellwether/apis/conditions"
)

// maxNote is the API's limit of an Event's note, in bytes. The API server refuses a longer one.
const maxNote = 1024

// cut returns a note that the API server takes.
func cut(note string) string {
	const ellipsis = "…"
	if len(note) <= maxNote {
		return note
	}
	end := maxNote - len(ellipsis)
	for !utf8.RuneStart(note[end]) {
		end--
	}
	return note[:end] + ellipsis
}

// Emit emits an Event about an object. Its type follows from the reason: see conditions.EventType. The note is cut at
// the API's limit.
func Emit(to events.EventRecorder, about runtime.Object, reason, action, format string, args ...any) {
	emit(to, about, conditions.EventType(reason), reason, action, fmt.Sprintf(format, args...))
}

func emit(to events.EventRecorder, about runtime.Object, eventType, reason, action, note string) {
	to.Eventf(about, nil, eventType, reason, action, "%s", cut(note))
}
