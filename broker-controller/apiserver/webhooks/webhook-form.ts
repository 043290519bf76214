/** A write in the group and version that a webhook names in its rules (matchPolicy Equivalent). */
import type { AnyObject } from '../../../api/meta.ts'
import { apiVersionOf } from '../../../api/resources.ts'
import type { ConversionGate } from '../handlers/conversion/conversion-gate.ts'
import { type KindStrategy, shownForm, storedForm } from '../handlers/strategy.ts'
import type { ReviewedWrite } from '../handlers/webhook-gate.ts'
import { readObject } from '../wire/request-body.ts'

/** What a webhook is sent of a write. `object` may have any form where other webhooks changed it. */
export type ReviewedForm = {
  readonly resource: KindStrategy
  readonly object: unknown
  readonly old: AnyObject | undefined
}

/** For kinds whose versions a webhook converts. */
export type ConvertedForms = Pick<ConversionGate, 'converted'>

/**
 * The write with `object`, which webhooks before may have changed. Throws the ApiError of an object that cannot be decoded, or not
 * converted.
 */
export async function formOf(
  write: ReviewedWrite,
  object: unknown,
  resource: KindStrategy,
  conversions: ConvertedForms | undefined,
): Promise<ReviewedForm> {
  const { old, route } = write
  if (resource === route.resource) return { resource, object, old }
  // What webhooks made of it is not decoded yet.
  const decoded = object === write.object ? write.object : readObject(route.resource, object, 'Ignore').value
  const shown = (one: AnyObject) => inForm(one, route.resource, resource, conversions)
  return { resource, object: decoded && (await shown(decoded)), old: old && (await shown(old)) }
}

/** What a webhook made of an object of `from`, as the client of the write sees it. Throws as `formOf`. */
export async function writtenForm(
  object: unknown,
  from: KindStrategy,
  { route: { resource } }: ReviewedWrite,
  conversions: ConvertedForms | undefined,
): Promise<unknown> {
  if (resource === from) return object
  return inForm(readObject(from, object, 'Ignore').value, from, resource, conversions)
}

async function inForm(
  object: AnyObject,
  from: KindStrategy,
  to: KindStrategy,
  conversions: ConvertedForms | undefined,
): Promise<AnyObject> {
  const stored = storedForm(from, object)
  if (from.defined?.conversion === undefined || conversions === undefined) return shownForm(to, stored)
  const [converted = stored] = await conversions.converted([stored], from, apiVersionOf(to))
  return shownForm(to, converted)
}
