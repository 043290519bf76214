/** events.k8s.io/v1 Event: the stored Events of core/v1 in their other form (pkg/apis/events/v1/conversion.go). */
import type { Event } from '../../../api/event.ts'
import { type EventV1, eventOfV1, eventV1Fields, eventV1Of } from '../../../api/event-v1.ts'
import { otherForms } from '../../../api/resources.ts'
import { changedEventProblems, newEventProblems } from '../../../api/validation/event-validation.ts'
import type { KindStrategy } from '../handlers/strategy.ts'
import { eventStrategy } from './event.ts'

export const eventV1Strategy: KindStrategy<Event> = {
  ...eventStrategy,
  ...otherForms.events,
  selectableFields: Object.keys(eventV1Fields),
  form: {
    // Read with the schema of this version.
    read: (event) => eventOfV1(event as EventV1),
    show: (event) => eventV1Of(event as Event),
    fields: eventV1Fields,
  },
  withDefaults: (event) => event,
  validateCreate: newEventProblems,
  validateUpdate: changedEventProblems,
}
