/** Where requests meet the webhooks that convert custom resources between the versions of their kind. */
import type { WebhookClientConfig } from '../../../../api/admission/webhook.ts'
import { ApiError } from '../../../../api/api-error.ts'
import type { Identity } from '../../../../api/identity.ts'
import type { AnyObject } from '../../../../api/meta.ts'
import type { JSONSchemaProps } from '../../../../api/structural/json-schema-props.ts'
import type { Store } from '../../../store/store.ts'
import type { KindStrategy } from '../strategy.ts'

/** How the objects of a kind are converted. */
export type KindConversion = {
  /** Name of the definition. */
  readonly definition: string
  readonly client: WebhookClientConfig
  /** `conversionReviewVersions`. */
  readonly reviewVersions: readonly string[]
  /** By apiVersion: what objects of that version may have. */
  readonly schemas: ReadonlyMap<string, JSONSchemaProps>
  /** The apiVersion in which objects are written. */
  readonly storedVersion: string
}

export interface ConversionGate {
  /** The store whose objects of this kind are read and written in the version of `kind`. `identity`: who waits for the webhook. */
  storeOf(kind: KindStrategy, store: Store, identity?: Identity): Store
  /** The objects, which have the version of `kind`, in this one. Throws the ApiError of a webhook that fails. */
  converted(objects: readonly AnyObject[], kind: KindStrategy, apiVersion: string): Promise<readonly AnyObject[]>
}

/** `needs` for a request about objects of this kind: its store has them in the version of the request. */
export function inVersionOf<
  Needs extends { readonly store: Store; readonly conversions?: Pick<ConversionGate, 'storeOf'> },
>(kind: KindStrategy, needs: Needs, identity?: Identity): Needs {
  const conversion = kind.defined?.conversion
  if (conversion === undefined) return needs
  if (needs.conversions === undefined) {
    throw new ApiError(
      'InternalError',
      `conversion webhook for ${conversion.definition} failed: webhooks are not called`,
    )
  }
  return { ...needs, store: needs.conversions.storeOf(kind, needs.store, identity) }
}
