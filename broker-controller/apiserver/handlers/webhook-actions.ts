/** Webhooks of what is done with an object and does not write it as a whole: bindings, evictions, tokens, connections. */
import { ApiError } from '../../../api/api-error.ts'
import type { AnyObject } from '../../../api/meta.ts'
import { apiVersionOf } from '../../../api/resources.ts'
import { isObject } from '../../../api/text/json.ts'
import { bodyForm } from '../wire/content-negotiation.ts'
import { isDryRun, parseBody } from '../wire/request-body.ts'
import type { ResourceNeeds, ResourceRequest, SubresourceAction } from './strategy.ts'
import { webhooksOf } from './webhook-gate.ts'

/**
 * The request, after webhooks have judged what its body asks for. They cannot change it. A body in protobuf is refused where the
 * action has no schema to read it by.
 */
export async function judgedAction(
  request: ResourceRequest,
  action: SubresourceAction,
  needs: ResourceNeeds,
): Promise<ResourceRequest> {
  const webhooks = await webhooksOf(request, needs.webhooks, 'CREATE', isDryRun(request.query))
  if (webhooks === undefined) return request
  const body = await request.readBody()
  const isEmpty = body.length === 0
  if (!isEmpty && action.body === undefined && bodyForm(request.contentType) === 'protobuf') {
    throw new ApiError(
      'UnsupportedMediaType',
      'an admission webhook concerns this request: send it as application/json',
    )
  }
  const { body: schema = request.route.resource.schema } = action
  const parsed = isEmpty ? {} : parseBody(body, request, { schema }, needs.parseYaml)
  const object = { ...(isObject(parsed) ? parsed : {}), ...typeOf(request, action) } as unknown as AnyObject
  await webhooks.mutate(object, undefined).then((result) => refuseChange(result !== object))
  await webhooks.validate(object, undefined)
  return { ...request, readBody: async () => body }
}

/** Judges a connection by its options, which are its query: `PodExecOptions`. */
export async function judgeConnection(request: ResourceRequest, kind: string, needs: ResourceNeeds): Promise<void> {
  const webhooks = await webhooksOf(request, needs.webhooks, 'CONNECT', false)
  if (webhooks === undefined) return
  const options = { ...optionsIn(request.query), ...typeOf(request, { kind }) } as unknown as AnyObject
  await webhooks.mutate(options, undefined).then((result) => refuseChange(result !== options))
  await webhooks.validate(options, undefined)
}

function refuseChange(isChanged: boolean): void {
  if (!isChanged) return
  const because = 'admission webhook attempted to modify the object, which is not supported for this operation'
  throw new ApiError('InternalError', `Internal error occurred: ${because}`)
}

function typeOf(
  { route: { resource } }: ResourceRequest,
  { kind, group = resource.group, version = resource.version }: Pick<SubresourceAction, 'kind' | 'group' | 'version'>,
) {
  return { apiVersion: apiVersionOf({ group, version }), kind }
}

/** `command` is a list of words, `ports` of numbers, the rest true, false or text. */
function optionsIn(query: URLSearchParams): Record<string, unknown> {
  const names = [...new Set(query.keys())].filter((name) => name !== '__proto__')
  return Object.fromEntries(
    names.map((name) => {
      const values = query.getAll(name)
      if (name === 'command') return [name, values]
      if (name === 'ports') return [name, values.flatMap((value) => value.split(',')).map(Number)]
      const [value = ''] = values
      return [name, value === 'true' || value === 'false' ? value === 'true' : value]
    }),
  )
}
