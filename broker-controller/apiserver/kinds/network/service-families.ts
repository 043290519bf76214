/** The IP families of a Service: those it asks for, of those that the fleet has (initIPFamilyFields in pkg/registry/core/service/storage/alloc.go). */
import type { ApiError } from '../../../../api/api-error.ts'
import { noClusterIP, type Service, type ServiceSpec } from '../../../../api/network/service.ts'
import { invalid, invalidObject, type Problem } from '../../../../api/problem.ts'
import { resources } from '../../../../api/resources.ts'
import { type IPFamily, ipVersion } from '../../../../api/text/ip-address.ts'
import { equalJSON } from '../../../store/equal-json.ts'

/**
 * `given` with its policy and families; of addresses at most those that its author lets go are removed. `configured`: the families of the
 * fleet, the first one for Services that name none. Throws ApiError Invalid where they do not fit together.
 */
export function withFamilies(
  service: Service,
  given: ServiceSpec,
  old: ServiceSpec | undefined,
  configured: readonly IPFamily[],
): ServiceSpec {
  if (given.type === 'ExternalName' || (old !== undefined && stillPrefers(given, old))) return given
  const isBare = given.clusterIP === noClusterIP && Object.keys(given.selector ?? {}).length === 0
  const ipFamilyPolicy = given.ipFamilyPolicy ?? old?.ipFamilyPolicy ?? (isBare ? 'RequireDualStack' : 'SingleStack')
  const isSingle = ipFamilyPolicy === 'SingleStack'
  const spec = isSingle && old !== undefined ? withOneFamily(given, old) : given
  const { families, problems } = familiesWithAddresses(spec, configured)
  refuse(service, [...policyProblems({ ...spec, ipFamilyPolicy }, old), ...problems])
  if (!isBare) refuse(service, clusterProblems(ipFamilyPolicy, families, configured))
  const [first = configured[0] ?? 'IPv4', ...more] = families
  // The pods behind a Service without a selector may have families that those of the fleet do not have.
  const isBoth = !isSingle && more.length === 0 && (isBare || configured.length === 2)
  return { ...spec, ipFamilyPolicy, ipFamilies: isBoth ? [first, other(first)] : [first, ...more] }
}

/** What the fleet is not configured for. */
function clusterProblems(
  policy: ServiceSpec['ipFamilyPolicy'],
  families: readonly string[],
  configured: readonly IPFamily[],
): readonly Problem[] {
  const isMissing = policy === 'RequireDualStack' && configured.length < 2
  return [
    ...(isMissing
      ? [invalid('spec.ipFamilyPolicy', policy, 'this cluster is not configured for dual-stack services')]
      : []),
    ...families.flatMap((family, index) =>
      configured.some((one) => one === family)
        ? []
        : [invalid(`spec.ipFamilies[${index}]`, family, 'not configured on this cluster')],
    ),
  ]
}

/** A Service that prefers both families does not change when the fleet gets or loses one: its author does that (isMatchingPreferDualStackClusterIPFields). */
function stillPrefers(now: ServiceSpec, before: ServiceSpec): boolean {
  const prefers = 'PreferDualStack'
  return (
    now.ipFamilyPolicy === prefers &&
    (before.ipFamilyPolicy ?? prefers) === prefers &&
    now.type === before.type &&
    equalJSON(now.clusterIPs ?? [], before.clusterIPs ?? []) &&
    equalJSON(now.ipFamilies ?? [], before.ipFamilies ?? [])
  )
}

/** A Service that becomes `SingleStack` loses what is second of the fields that its author left as they were. */
function withOneFamily(spec: ServiceSpec, old: ServiceSpec): ServiceSpec {
  const first = (has: readonly string[] | undefined, had: readonly string[] | undefined) =>
    equalJSON(has ?? [], had ?? []) ? has?.slice(0, 1) : has
  const clusterIPs = first(spec.clusterIPs, old.clusterIPs)
  const ipFamilies = first(spec.ipFamilies, old.ipFamilies)
  return { ...spec, ...(clusterIPs && { clusterIPs }), ...(ipFamilies && { ipFamilies }) }
}

/** Those that are named, and behind them those of further addresses. */
function familiesWithAddresses({ clusterIPs = [], ipFamilies = [] }: ServiceSpec, configured: readonly IPFamily[]) {
  const families = [...ipFamilies]
  const problems: Problem[] = []
  for (const [index, ip] of clusterIPs.entries()) {
    if (ip === noClusterIP) break
    if (index < families.length) continue
    const family = ipVersion(ip) === 6 ? 'IPv6' : 'IPv4'
    if (configured.some((one) => one === family)) families.push(family)
    else problems.push(invalid(`spec.clusterIPs[${index}]`, clusterIPs, `${family} is not configured on this cluster`))
  }
  return { families, problems }
}

/** A second address or family needs a policy that allows it, and is released by one that does not. */
function policyProblems(spec: ServiceSpec, old: ServiceSpec | undefined): readonly Problem[] {
  const { clusterIPs = [], ipFamilies = [], ipFamilyPolicy } = spec
  const problem = (because: string) => invalid('spec.ipFamilyPolicy', ipFamilyPolicy, because)
  if (ipFamilyPolicy === 'SingleStack') {
    const many = (what: string) =>
      problem(`must be 'RequireDualStack' or 'PreferDualStack' when multiple ${what} are specified`)
    return [
      ...(clusterIPs.length === 2 ? [many('cluster IPs')] : []),
      ...(ipFamilies.length === 2 ? [many('IP families')] : []),
    ]
  }
  const released = (what: string, has: readonly string[], had: readonly string[] = []) =>
    has.length > 0 && has.length < had.length ? [problem(`must be 'SingleStack' to release the secondary ${what}`)] : []
  return [...released('cluster IP', clusterIPs, old?.clusterIPs), ...released('IP family', ipFamilies, old?.ipFamilies)]
}

function other(family: string): IPFamily {
  return family === 'IPv4' ? 'IPv6' : 'IPv4'
}

function refuse(service: Service, problems: readonly Problem[]): void {
  if (problems.length > 0) throw invalidService(service, problems)
}

/** Invalid, with what is wrong. */
export function invalidService({ metadata }: Service, problems: readonly Problem[]): ApiError {
  return invalidObject(resources.services, metadata.name ?? '', problems)
}
