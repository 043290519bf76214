/**
 * A kind with two versions and the webhook between them, as the conformance tests of Kubernetes have it: `hostPort: a:1` of v1 is `host: a`
 * and `port: "1"` of v2.
 */
import type { AnyObject } from '../../api/meta.ts'
import type { WebhookCall } from '../apiserver/webhooks/webhook-call.ts'
import { aDefinition } from './custom-api.ts'

export type ReviewRequest = {
  readonly uid: string
  readonly desiredAPIVersion: string
  readonly objects: readonly AnyObject[]
}
type Answer = { readonly [field: string]: unknown }

const text = { type: 'string' }
const withStatus = {
  subresources: { status: {}, scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' } },
}
const schemaOf = (fields: object) => ({
  openAPIV3Schema: {
    type: 'object',
    properties: {
      ...fields,
      spec: { type: 'object', properties: { replicas: { type: 'integer' } } },
      status: { type: 'object', properties: { phase: text, replicas: { type: 'integer' } } },
    },
  },
})
const v1 = {
  name: 'v1',
  served: true,
  schema: schemaOf({ hostPort: text }),
  ...withStatus,
  selectableFields: [{ jsonPath: '.hostPort' }],
}
const v2 = {
  name: 'v2',
  served: true,
  schema: schemaOf({ host: text, port: text }),
  ...withStatus,
  selectableFields: [{ jsonPath: '.host' }, { jsonPath: '.port' }],
  additionalPrinterColumns: [{ name: 'Host', type: 'string', jsonPath: '.host' }],
}

/** Its objects are stored in this version. */
export function convertedDefinition(storage: 'v1' | 'v2' = 'v1', webhook: object = {}) {
  const versions = [v1, v2].map((version) => ({ ...version, storage: version.name === storage }))
  const clientConfig = { url: 'https://127.0.0.1:1/convert' }
  const conversion = {
    strategy: 'Webhook',
    webhook: { clientConfig, conversionReviewVersions: ['v1', 'v1beta1'], ...webhook },
  }
  return aDefinition({}, { versions, spec: { conversion } })
}

/** The answer of a webhook that converts as it should. */
export function convertedAnswer({ uid, desiredAPIVersion, objects }: ReviewRequest): Answer {
  return {
    uid,
    result: { status: 'Success' },
    convertedObjects: objects.map((one) => converted(one, desiredAPIVersion)),
  }
}

function converted(object: AnyObject, apiVersion: string): AnyObject {
  if (apiVersion === 'example.com/v2') {
    const { hostPort, ...others } = object as AnyObject & { readonly hostPort?: string }
    const [host, port] = hostPort?.split(':') ?? []
    return { ...others, apiVersion, ...(host !== undefined && { host, port }) }
  }
  const { host, port, ...others } = object as AnyObject & { readonly host?: string; readonly port?: string }
  return { ...others, apiVersion, ...(host !== undefined && { hostPort: `${host}:${port}` }) }
}

/** A webhook that keeps what it is asked. `answer`: of the next calls; undefined: as it should. */
export function aConversionWebhook() {
  const reviews: ReviewRequest[] = []
  let answer: (request: ReviewRequest, call: WebhookCall) => Answer | Promise<Answer> = convertedAnswer
  return {
    reviews,
    /** How many objects were sent since the last call of this. */
    taken: () => reviews.splice(0).reduce((sum, { objects }) => sum + objects.length, 0),
    answerBy(given: typeof answer = convertedAnswer) {
      answer = given
    },
    async call(call: WebhookCall): Promise<unknown> {
      const review = JSON.parse(call.body) as { readonly apiVersion: string; readonly request: ReviewRequest }
      reviews.push(review.request)
      const response = await answer(review.request, call)
      return JSON.parse(JSON.stringify({ apiVersion: review.apiVersion, kind: 'ConversionReview', response }))
    },
  }
}
