/** create of pods/eviction: a deletion that asks the disruption budgets first. */
import { ApiError, isApiError } from '../../../api/api-error.ts'
import type { AnyObject } from '../../../api/meta.ts'
import type { Pod } from '../../../api/pod.ts'
import { EvictionSchema } from '../../../api/pod-disruption-budget.ts'
import { rfc3339 } from '../../../daemon/clock.ts'
import { deleteOne, refuseOther } from '../handlers/deleting.ts'
import { keyOfRoute, presentObject } from '../handlers/resource-request.ts'
import type { ResourceNeeds, ResourceRequest } from '../handlers/strategy.ts'
import { type ApiResponse, objectAnswer } from '../wire/answers.ts'
import { isDryRun, parseBody, readAs, withType } from '../wire/request-body.ts'
import { successStatus } from '../wire/status-errors.ts'
import { type EvictionGrant, evictedPod, evictionGrant, notYetKnown } from './eviction-grant.ts'

/** 201 when the pod is on its way out; throws TooManyRequests while its budget forbids it. */
export async function evictPod(request: ResourceRequest, needs: ResourceNeeds): Promise<ApiResponse> {
  const { route, query } = request
  const input = parseBody(await request.readBody(), request, { schema: EvictionSchema }, needs.parseYaml)
  const { metadata, deleteOptions: options = {} } = readAs(
    EvictionSchema,
    'Eviction',
    withType(input, { apiVersion: 'policy/v1', kind: 'Eviction' }),
  )
  if (metadata.name !== route.name) {
    throw new ApiError('BadRequest', 'name in URL does not match name in Eviction object')
  }
  const dryRun = isDryRun(query, 'DeleteOptions', options.dryRun)
  const granted = await grantOf(request, needs, (pod) => refuseOther(route.resource, pod, options), dryRun)
  const { preconditions } = options
  const seen = granted.grant === 'unready' && { resourceVersion: granted.resourceVersion }
  try {
    await deleteOne(
      route.resource,
      {
        key: keyOfRoute(route),
        options: { ...options, preconditions: { ...preconditions, ...seen } },
        dryRun,
        change: (pod) => (isPod(pod) ? evictedPod(pod, rfc3339(needs.clock.wallMs())) : pod),
      },
      needs,
    )
  } catch (error) {
    // It may have become ready meanwhile, and then its budget counts.
    if (granted.grant === 'unready' && isApiError(error, 'Conflict')) throw notYetKnown(granted.budget)
    throw error
  }
  return objectAnswer(successStatus(), 201)
}

type Granted =
  | { readonly grant: 'free' | 'budget' }
  | { readonly grant: 'unready'; readonly budget: string; readonly resourceVersion: string }

/** Its controller and other evictions write the same budget. */
const tries = 20
const mostMs = 500

async function grantOf(
  request: ResourceRequest,
  needs: ResourceNeeds,
  check: (pod: Pod & AnyObject) => void,
  dryRun: boolean,
): Promise<Granted> {
  const { store, clock } = needs
  for (let failures = 0; ; failures++) {
    const present = await presentObject(request, needs)
    if (!isPod(present)) return { grant: 'free' }
    check(present)
    const { items } = await store.list('poddisruptionbudgets', request.route.namespace)
    const granted: EvictionGrant = evictionGrant(present, items, rfc3339(clock.wallMs()))
    switch (granted.grant) {
      case 'refused':
        throw granted.error
      case 'free':
        return { grant: 'free' }
      case 'unready': {
        const { name = '' } = granted.budget.metadata
        return { grant: 'unready', budget: name, resourceVersion: present.metadata.resourceVersion }
      }
      case 'budget':
        if (dryRun) return { grant: 'budget' }
    }
    try {
      await store.updateStatus('poddisruptionbudgets', granted.budget)
      return { grant: 'budget' }
    } catch (error) {
      const isLate = isApiError(error, 'Conflict') || isApiError(error, 'NotFound')
      if (!isLate || failures === tries) throw error
      await clock.sleep(Math.min(mostMs, 10 * 2 ** failures), request.signal)
    }
  }
}

function isPod(object: AnyObject): object is Pod {
  return object.kind === 'Pod'
}
