/** Validates the operating system of a pod, and what belongs to one system only (pkg/apis/core/validation/validation.go). */
import { dnsSubdomainProblem } from '../names.ts'
import type { PodSpec } from '../pod.ts'
import { forbidden, invalid, notSupported, type Problem, required } from '../problem.ts'
import { problemsWith } from './metadata-validation.ts'

const utf8 = new TextEncoder()

const systems = ['linux', 'windows']

/**
 * Problems of a specification at the path `at` (validateOS, validateLinux, validateWindows,
 * validateWindowsHostProcessPod).
 */
export function osProblems(at: string, spec: PodSpec): readonly Problem[] {
  const options = windowsOptionsOf(at, spec)
  return [
    ...options.flatMap(({ field, windowsOptions }) => optionProblems(field, windowsOptions)),
    ...hostProcessProblems(at, spec),
    ...systemProblems(at, spec, options),
  ]
}

type WindowsOptions = NonNullable<NonNullable<PodSpec['securityContext']>['windowsOptions']>
type GivenOptions = { readonly field: string; readonly windowsOptions: WindowsOptions }

function systemProblems(at: string, spec: PodSpec, options: readonly GivenOptions[]): readonly Problem[] {
  if (spec.os === undefined) return []
  const { name } = spec.os
  if (name === '') return [required(`${at}.os.name`, 'cannot be empty')]
  if (!systems.includes(name)) return [notSupported(`${at}.os`, name, systems)]
  if (name === 'windows') return linuxOnly(at, spec)
  return options.map(({ field }) => forbidden(field, 'windows options cannot be set for a linux pod'))
}

const linuxFieldsOfPods = [
  ...['appArmorProfile', 'seLinuxOptions', 'seccompProfile', 'fsGroup', 'fsGroupChangePolicy', 'sysctls'],
  ...['runAsUser', 'runAsGroup', 'supplementalGroups', 'supplementalGroupsPolicy', 'seLinuxChangePolicy'],
] as const
const linuxFieldsOfContainers = [
  ...['appArmorProfile', 'seLinuxOptions', 'seccompProfile', 'capabilities', 'readOnlyRootFilesystem', 'privileged'],
  ...['allowPrivilegeEscalation', 'procMount', 'runAsUser', 'runAsGroup'],
] as const

function linuxOnly(at: string, spec: PodSpec): readonly Problem[] {
  const { securityContext = {}, hostUsers, hostPID, hostIPC, shareProcessNamespace } = spec
  const given = [
    ...present(`${at}.securityContext`, securityContext, linuxFieldsOfPods),
    // The first may be false and still be given; the second and third are not pointers in Kubernetes.
    ...(hostUsers === undefined ? [] : [`${at}.hostUsers`]),
    ...(hostPID ? [`${at}.hostPID`] : []),
    ...(hostIPC ? [`${at}.hostIPC`] : []),
    ...(shareProcessNamespace === undefined ? [] : [`${at}.shareProcessNamespace`]),
    ...containersOf(at, spec).flatMap(({ field, container }) =>
      present(`${field}.securityContext`, container.securityContext ?? {}, linuxFieldsOfContainers),
    ),
  ]
  return given.map((field) => forbidden(field, 'cannot be set for a windows pod'))
}

/** Those of the fields that are given. */
function present(at: string, object: { readonly [field: string]: unknown }, fields: readonly string[]): string[] {
  return fields.filter((field) => object[field] !== undefined).map((field) => `${at}.${field}`)
}

function containersOf(at: string, { initContainers = [], containers, ephemeralContainers = [] }: PodSpec) {
  const lists = { initContainers, containers, ephemeralContainers }
  return Object.entries(lists).flatMap(([list, all]) =>
    all.map((container, index) => ({ field: `${at}.${list}[${index}]`, container })),
  )
}

function windowsOptionsOf(at: string, spec: PodSpec): readonly GivenOptions[] {
  const contexts = [
    { field: at, securityContext: spec.securityContext },
    ...containersOf(at, spec).map(({ field, container: { securityContext } }) => ({ field, securityContext })),
  ]
  return contexts.flatMap(({ field, securityContext }) => {
    const windowsOptions = securityContext?.windowsOptions
    return windowsOptions === undefined ? [] : [{ field: `${field}.securityContext.windowsOptions`, windowsOptions }]
  })
}

const mostSpecKiB = 64
const longestDomain = 255
const longestUser = 104
/** As in validateWindowsSecurityContextOptions. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
const controlCharacters = /[\u0000-\u001f\u007f]/
const netBiosName = /^[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}$/
const dnsName = /^[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$/
const wrongInUser = /["/\\:;|=,+*?<>@[\]]/

function optionProblems(
  at: string,
  { gmsaCredentialSpecName, gmsaCredentialSpec, runAsUserName }: WindowsOptions,
): readonly Problem[] {
  const field = `${at}.gmsaCredentialSpec`
  const bytes = gmsaCredentialSpec === undefined ? undefined : utf8.encode(gmsaCredentialSpec).length
  return [
    ...(gmsaCredentialSpecName === undefined
      ? []
      : problemsWith(`${at}.gmsaCredentialSpecName`, gmsaCredentialSpecName, dnsSubdomainProblem)),
    ...(bytes === 0 ? [invalid(field, '', 'gmsaCredentialSpec cannot be an empty string')] : []),
    ...(bytes !== undefined && bytes > mostSpecKiB * 1024
      ? [invalid(field, gmsaCredentialSpec, `gmsaCredentialSpec size must be under ${mostSpecKiB} KiB`)]
      : []),
    ...(runAsUserName === undefined ? [] : userNameProblems(runAsUserName)).map((because) =>
      invalid(`${at}.runAsUserName`, runAsUserName, because),
    ),
  ]
}

/** `USER` or `DOMAIN\USER`. */
function userNameProblems(name: string): readonly string[] {
  if (name === '') return ['runAsUserName cannot be an empty string']
  if (controlCharacters.test(name)) return ['runAsUserName cannot contain control characters']
  const parts = name.split('\\')
  if (parts.length > 2) return ['runAsUserName cannot contain more than one backslash']
  const [domain, user = ''] = parts.length === 2 ? parts : [undefined, name]
  const found: string[] = []
  if (domain !== undefined && utf8.encode(domain).length > longestDomain) {
    found.push(`runAsUserName's Domain length must be under ${longestDomain + 1} characters`)
  }
  if (domain !== undefined && !netBiosName.test(domain) && !dnsName.test(domain)) {
    found.push("runAsUserName's Domain doesn't match the NetBios nor the DNS format")
  }
  if (user === '') found.push("runAsUserName's User cannot be empty")
  if (utf8.encode(user).length > longestUser) {
    found.push(`runAsUserName's User length must not be longer than ${longestUser} characters`)
  }
  if (/^[. ]+$/.test(user)) found.push("runAsUserName's User cannot contain only periods or spaces")
  if (wrongInUser.test(user)) {
    found.push(`runAsUserName's User cannot contain the following characters: "/\\:;|=,+*?<>@[]`)
  }
  return found
}

/** All containers of a pod are processes of the host, or none. */
function hostProcessProblems(at: string, spec: PodSpec): readonly Problem[] {
  const ofPod = spec.securityContext?.windowsOptions?.hostProcess
  const containers = containersOf(at, spec).map(({ field, container }) => ({
    field: `${field}.securityContext.windowsOptions.hostProcess`,
    own: container.securityContext?.windowsOptions?.hostProcess,
  }))
  const because = `pod hostProcess value must be identical if both are specified, was ${ofPod}`
  const different = containers.flatMap(({ field, own }) =>
    ofPod !== undefined && own !== undefined && ofPod !== own ? [invalid(field, own, because)] : [],
  )
  const hostProcesses = containers.filter(({ own }) => own ?? ofPod).length
  if (hostProcesses === 0) return different
  const all = 'If pod contains any hostProcess containers then all containers must be HostProcess containers'
  const network = 'hostNetwork must be true if pod contains any hostProcess containers'
  return [
    ...different,
    ...(hostProcesses === containers.length ? [] : [invalid(at, '', all)]),
    ...(spec.hostNetwork ? [] : [invalid(`${at}.hostNetwork`, false, network)]),
  ]
}
