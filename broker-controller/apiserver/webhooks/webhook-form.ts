/** A write in the group and version that a webhook names in its rules (matchPolicy Equivalent). */
import type { AnyObject } from '../../../api/meta.ts'
import { type KindStrategy, shownForm, storedForm } from '../handlers/strategy.ts'
import type { ReviewedWrite } from '../handlers/webhook-gate.ts'
import { readObject } from '../wire/request-body.ts'

/** What a webhook is sent of a write. `object` may have any form where other webhooks changed it. */
export type ReviewedForm = {
  readonly resource: KindStrategy
  readonly object: unknown
  readonly old: AnyObject | undefined
}

/** The write with `object`, which webhooks before may have changed. Throws the ApiError of an object that cannot be decoded. */
export function formOf(write: ReviewedWrite, object: unknown, resource: KindStrategy): ReviewedForm {
  const { old, route } = write
  if (resource === route.resource) return { resource, object, old }
  const shown = (one: AnyObject) => shownForm(resource, storedForm(route.resource, one))
  // What webhooks made of it is not decoded yet.
  const decoded = object === write.object ? write.object : readObject(route.resource, object, 'Ignore').value
  return { resource, object: decoded && shown(decoded), old: old && shown(old) }
}

/** What a webhook made of an object of `from`, as the client of the write sees it. Throws as `formOf`. */
export function writtenForm(object: unknown, from: KindStrategy, { route: { resource } }: ReviewedWrite): unknown {
  return resource === from ? object : shownForm(resource, storedForm(from, readObject(from, object, 'Ignore').value))
}
