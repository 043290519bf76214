/** What keeps the server of an APIService from being asked, and what follows from its answer. Pure. */
import type { Endpoints } from '../../../api/network/endpoints.ts'
import type { Service } from '../../../api/network/service.ts'
import { type Availability, withAvailability } from '../../../api/registration/api-service.ts'
import { equalJSON } from '../../store/equal-json.ts'
import type { StoredApiService } from './api-services.ts'

const checkMs = 30_000
const failedCheckMs = 5_000
/** Others have written meanwhile. */
export const againMs = 100

/** Why nothing can be asked: of the Service, its port and its endpoints. undefined: all are there. */
export function serviceProblem(
  { spec }: Pick<StoredApiService, 'spec'>,
  service: Service | undefined,
  endpoints: Endpoints | undefined,
): Availability | undefined {
  const { namespace = '', name = '', port = 443 } = spec.service ?? {}
  const place = `service/${name} in ${JSON.stringify(namespace)}`
  const failed = (reason: string, message: string): Availability => ({ status: 'False', reason, message })
  if (service === undefined) return failed('ServiceNotFound', `${place} is not present`)
  if ((service.spec?.type ?? 'ClusterIP') !== 'ClusterIP') return undefined
  const found = service.spec?.ports?.find((one) => one.port === port)
  if (found === undefined) return failed('ServicePortError', `${place} is not listening on port ${port}`)
  if (endpoints === undefined) return failed('EndpointsNotFound', `cannot find endpoints for ${place}`)
  const portName = found.name ?? ''
  const isReady = endpoints.subsets?.some(
    ({ addresses = [], ports = [] }) => addresses.length > 0 && ports.some((one) => (one.name ?? '') === portName),
  )
  if (isReady) return undefined
  const missing = `endpoints for ${place} have no addresses with port name ${JSON.stringify(portName)}`
  return failed('MissingEndpoints', missing)
}

/** The object to write, if its status changes, and when to check again. Without both: the APIService is gone. */
export type AfterCheck = { readonly write?: StoredApiService; readonly requeueAfterMs?: number }

/** `checked`: as it was before the check. `present`: as it is now. `now` is RFC 3339. */
export function afterCheck(
  checked: Pick<StoredApiService, 'spec'>,
  present: StoredApiService | undefined,
  found: Availability,
  now: string,
): AfterCheck {
  if (present === undefined) return {}
  // What was found is about another server.
  if (!equalJSON(present.spec, checked.spec)) return { requeueAfterMs: againMs }
  const status = withAvailability(present.status, found, now)
  const requeueAfterMs = found.reason === 'FailedDiscoveryCheck' ? failedCheckMs : checkMs
  return { ...(status !== present.status && { write: { ...present, status } }), requeueAfterMs }
}
