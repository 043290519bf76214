/** Validates the security contexts of a pod, and its host names. */

import { dnsLabelProblem, dnsSubdomainProblem } from '../names.ts'
import { sysctlName, sysctlNameProblem } from '../pod/sysctls.ts'
import type { Container, PodSpec, SecurityContext } from '../pod.ts'
import { duplicate, forbidden, invalid, notSupported, type Problem, required } from '../problem.ts'
import { isIPAddress } from '../text/ip-address.ts'
import { problemsWith } from './metadata-validation.ts'
import { repeatedPlaces } from './repeated.ts'

export function podSecurityProblems(
  specAt: string,
  { securityContext = {}, hostNetwork, hostIPC }: PodSpec,
): readonly Problem[] {
  const at = `${specAt}.securityContext`
  const { runAsUser, runAsGroup, fsGroup, supplementalGroups = [], sysctls = [] } = securityContext
  const { fsGroupChangePolicy, seccompProfile, appArmorProfile } = securityContext
  return [
    ...idProblems(`${at}.runAsUser`, runAsUser),
    ...idProblems(`${at}.runAsGroup`, runAsGroup),
    ...idProblems(`${at}.fsGroup`, fsGroup),
    ...supplementalGroups.flatMap((group, index) => idProblems(`${at}.supplementalGroups[${index}]`, group)),
    ...oneOf(`${at}.fsGroupChangePolicy`, fsGroupChangePolicy, ['OnRootMismatch', 'Always']),
    ...profileProblems(`${at}.seccompProfile`, seccompProfile, true),
    ...profileProblems(`${at}.appArmorProfile`, appArmorProfile, false),
    ...sysctlProblems(`${at}.sysctls`, sysctls, { hostNetwork, hostIPC }),
  ]
}

/** Whether the node allows them is for the node to decide. */
function sysctlProblems(
  at: string,
  sysctls: readonly { readonly name: string }[],
  { hostNetwork, hostIPC }: Pick<PodSpec, 'hostNetwork' | 'hostIPC'>,
): readonly Problem[] {
  const names = sysctls.map(({ name }) => sysctlName(name))
  const repeated = repeatedPlaces(names)
  return names.flatMap((name, index) => {
    const field = `${at}[${index}].name`
    const given = sysctls[index]?.name ?? ''
    if (given === '') return [required(field)]
    const problem = sysctlNameProblem(given)
    if (problem !== undefined) return [invalid(field, given, problem)]
    if (repeated.has(index)) return [duplicate(field, given)]
    if (hostNetwork && name.startsWith('net.'))
      return [invalid(field, given, "may not be specified when 'hostNetwork' is true")]
    return hostIPC && /^(kernel\.(shm|msg|sem)|fs\.mqueue\.)/.test(name)
      ? [invalid(field, given, "may not be specified when 'hostIPC' is true")]
      : []
  })
}

export function containerSecurityProblems(field: string, { securityContext }: Container): readonly Problem[] {
  if (securityContext === undefined) return []
  const at = `${field}.securityContext`
  const { runAsUser, runAsGroup, seccompProfile, appArmorProfile } = securityContext
  return [
    ...idProblems(`${at}.runAsUser`, runAsUser),
    ...idProblems(`${at}.runAsGroup`, runAsGroup),
    ...profileProblems(`${at}.seccompProfile`, seccompProfile, true),
    ...profileProblems(`${at}.appArmorProfile`, appArmorProfile, false),
    ...escalationProblems(at, securityContext),
  ]
}

function escalationProblems(at: string, { allowPrivilegeEscalation, privileged, capabilities }: SecurityContext) {
  if (allowPrivilegeEscalation !== false) return []
  if (privileged) return [invalid(at, '', 'cannot set `allowPrivilegeEscalation` to false and `privileged` to true')]
  // SYS_ADMIN, which engines take for the same, is not compared (ValidateSecurityContext).
  const administers = (capabilities?.add ?? []).includes('CAP_SYS_ADMIN')
  return administers
    ? [invalid(at, '', 'cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN')]
    : []
}

function idProblems(field: string, id: number | undefined): readonly Problem[] {
  if (id === undefined || (id >= 0 && id <= 2 ** 31 - 1)) return []
  return [invalid(field, id, 'must be between 0 and 2147483647, inclusive')]
}

const profileTypes = ['Localhost', 'RuntimeDefault', 'Unconfined']

function profileProblems(
  field: string,
  profile: { readonly type: string; readonly localhostProfile?: string } | undefined,
  isFile: boolean,
): readonly Problem[] {
  if (profile === undefined) return []
  const { type, localhostProfile = '' } = profile
  const at = `${field}.localhostProfile`
  if (!profileTypes.includes(type)) return [notSupported(`${field}.type`, type, profileTypes)]
  if (type !== 'Localhost') {
    return localhostProfile === '' ? [] : [invalid(at, localhostProfile, 'can only be set when `type` is Localhost')]
  }
  if (localhostProfile === '') return [required(at, 'must be set when `type` is Localhost')]
  const leaves = isFile && (localhostProfile.startsWith('/') || localhostProfile.split('/').includes('..'))
  return leaves ? [invalid(at, localhostProfile, "must be a relative path without '..'")] : []
}

/** Host names: the pod's own, its host aliases, and its DNS servers. */
export function nameProblems(at: string, spec: PodSpec): readonly Problem[] {
  const { hostname = '', subdomain = '', hostAliases = [], dnsPolicy, dnsConfig } = spec
  const { nameservers = [], searches = [], options = [] } = dnsConfig ?? {}
  return [
    ...(hostname === '' ? [] : problemsWith(`${at}.hostname`, hostname, dnsLabelProblem)),
    ...(subdomain === '' ? [] : problemsWith(`${at}.subdomain`, subdomain, dnsLabelProblem)),
    ...hostAliases.flatMap(({ ip, hostnames = [] }, index) => [
      ...ipProblems(`${at}.hostAliases[${index}].ip`, ip),
      ...hostnames.flatMap((name, i) =>
        problemsWith(`${at}.hostAliases[${index}].hostnames[${i}]`, name, dnsSubdomainProblem),
      ),
    ]),
    ...(dnsPolicy === 'None' && nameservers.length === 0
      ? [required(`${at}.dnsConfig.nameservers`, 'must provide at least one DNS nameserver when `dnsPolicy` is None')]
      : []),
    ...(nameservers.length > 3
      ? [invalid(`${at}.dnsConfig.nameservers`, nameservers, 'must not have more than 3 nameservers')]
      : []),
    ...nameservers.flatMap((server, index) => ipProblems(`${at}.dnsConfig.nameservers[${index}]`, server)),
    ...(searches.length > 32
      ? [invalid(`${at}.dnsConfig.searches`, searches.length, 'must not have more than 32 search paths')]
      : []),
    ...searches.flatMap((name, index) =>
      problemsWith(`${at}.dnsConfig.searches[${index}]`, name.replace(/\.$/, ''), dnsSubdomainProblem),
    ),
    ...options.flatMap(({ name = '' }, index) =>
      name === '' ? [required(`${at}.dnsConfig.options[${index}].name`)] : [],
    ),
  ]
}

function ipProblems(field: string, ip: string): readonly Problem[] {
  return !isIPAddress(ip) ? [invalid(field, ip, 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)')] : []
}

function oneOf(field: string, value: string | undefined, words: readonly string[]): readonly Problem[] {
  return value === undefined || words.includes(value) ? [] : [notSupported(field, value, words)]
}

/** What of it belongs to other systems than ours. */
export function foreignProblems(at: string, spec: PodSpec): readonly Problem[] {
  const policy = spec.securityContext?.supplementalGroupsPolicy ?? 'Merge'
  return policy === 'Merge'
    ? []
    : [forbidden(`${at}.securityContext.supplementalGroupsPolicy`, 'only Merge can be done by the container engine')]
}
