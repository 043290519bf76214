/** get, list, watch. */
import { ApiError } from '../../../api/api-error.ts'
import type { AnyStored } from '../../store/store.ts'
import { type ApiResponse, objectAnswer } from '../wire/answers.ts'
import { pageOf, pageOfList, refuseListOptions, selectionOf, watchStart } from './list-options.ts'
import { represent, representBookmark, representList, representPart } from './representation.ts'
import { presentObject, representationOptions } from './resource-request.ts'
import type { ResourceNeeds, ResourceRequest } from './strategy.ts'
import { watchLines } from './watch.ts'

export async function getObject(request: ResourceRequest, needs: ResourceNeeds): Promise<ApiResponse> {
  const representation = representationOptions(request, needs)
  const object = await presentObject(request, needs)
  return objectAnswer(representPart(request.route, object, representation))
}

/** Always the newest state, which is at least as new as any version a client may ask for. */
export async function listObjects(request: ResourceRequest, needs: ResourceNeeds): Promise<ApiResponse> {
  const { route, query } = request
  const representation = representationOptions(request, needs)
  const { matches, isEverything } = selectionOf(route.resource, query)
  const nowMs = needs.clock.wallMs()
  refuseListOptions(query)
  const page = pageOf(query, nowMs)
  const { items, resourceVersion } = await needs.store.list(route.resource.id, route.namespace || undefined)
  if (query.get('resourceVersionMatch') === 'Exact' && query.get('resourceVersion') !== resourceVersion) {
    throw new ApiError(
      'Expired',
      `The resourceVersion for the provided list is too old: only ${resourceVersion} is kept`,
    )
  }
  const selected = isEverything ? items : items.filter(matches)
  const { items: found, metadata } = pageOfList(selected, { resourceVersion, nowMs }, page, isEverything)
  return objectAnswer(representList(route.resource, found, metadata, representation))
}

export async function watchObjects(request: ResourceRequest, needs: ResourceNeeds): Promise<ApiResponse> {
  const { route, query, signal } = request
  const { resource } = route
  const representation = representationOptions(request, needs)
  const { matches } = selectionOf(resource, query)
  const start = watchStart(query, await needs.store.version(resource.id))
  const options = {
    ...start,
    namespace: route.namespace || undefined,
    matches,
    shown: (object: AnyStored, first: boolean) => {
      const shown = represent(resource, object, { ...representation, nowMs: needs.clock.wallMs() })
      return representation.form === 'table' && !first ? withoutHeader(shown) : shown
    },
    bookmark: (metadata: { resourceVersion: string }) => representBookmark(resource, metadata, representation),
    emptyList: () => JSON.stringify(representList(resource, [], {}, representation)),
    ended: resource.defined?.ended,
  }
  return { kind: 'stream', pieces: watchLines(needs, resource.id, options, signal) }
}

/** The columns are sent once, with the first row. */
function withoutHeader(table: unknown): unknown {
  return { ...(table as object), columnDefinitions: [] }
}
