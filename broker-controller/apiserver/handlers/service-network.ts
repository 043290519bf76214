/** State shared by all Services: the range of their addresses, and the order in which they are written. */
import { defaultServiceCIDR } from '../../../api/network/service-range.ts'
import { type Cidr, parseCidr } from '../../../api/text/cidr.ts'
import { type Mutex, mutex } from '../../../daemon/mutex.ts'

export type ServiceNetwork = { readonly range: Cidr; readonly oneAtATime: Mutex }

/** Throws TypeError for a range that `serviceCidrProblem` (api/network/service-range.ts) refuses. */
export function serviceNetwork(serviceCIDR: string = defaultServiceCIDR): ServiceNetwork {
  const range = parseCidr(serviceCIDR)
  if (range === undefined) throw new TypeError(`${serviceCIDR} is no range of addresses`)
  return { range, oneAtATime: mutex() }
}
