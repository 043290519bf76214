/** Checks of capabilities, and of `restricted` for what a process may gain and who it runs as. */
import type { Container } from '../pod.ts'
import {
  type CheckFunction,
  containersText,
  distinct,
  exceptOnWindows,
  quotedList,
  type SecurityCheck,
  settersText,
} from './security-check.ts'

/** Those that Docker gives by default, but for the two that give raw access to the network. */
const defaultCapabilities: ReadonlySet<string> = new Set([
  ...['AUDIT_WRITE', 'CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'FSETID', 'KILL', 'MKNOD', 'NET_BIND_SERVICE', 'SETFCAP'],
  ...['SETGID', 'SETPCAP', 'SETUID', 'SYS_CHROOT'],
])

export const capabilitiesBaseline: SecurityCheck = {
  name: 'capabilities_baseline',
  level: 'baseline',
  versions: [
    {
      since: 0,
      check({ containers }) {
        const { bad, added } = forbiddenCapabilities(containers, (name) => defaultCapabilities.has(name))
        return bad.length === 0 ? undefined : { reason: 'non-default capabilities', detail: mustNotInclude(bad, added) }
      },
    },
  ],
}

const onlyDropped: CheckFunction = ({ containers }) => {
  const undropped = containers.filter(({ securityContext }) => {
    return securityContext?.capabilities?.drop?.includes('ALL') !== true
  })
  const { bad, added } = forbiddenCapabilities(containers, (name) => name === 'NET_BIND_SERVICE')
  const details = [
    ...(undropped.length === 0
      ? []
      : [`${containersText(undropped)} must set securityContext.capabilities.drop=["ALL"]`]),
    ...(bad.length === 0 ? [] : [mustNotInclude(bad, added)]),
  ]
  return details.length === 0 ? undefined : { reason: 'unrestricted capabilities', detail: details.join('; ') }
}

export const capabilitiesRestricted: SecurityCheck = {
  name: 'capabilities_restricted',
  level: 'restricted',
  replaces: 'capabilities_baseline',
  versions: [
    { since: 22, check: onlyDropped },
    { since: 25, check: exceptOnWindows(onlyDropped) },
  ],
}

function forbiddenCapabilities(containers: readonly Container[], isAllowed: (name: string) => boolean) {
  const addedBy = ({ securityContext }: Container) =>
    (securityContext?.capabilities?.add ?? []).filter((name) => !isAllowed(name))
  const bad = containers.filter((container) => addedBy(container).length > 0)
  return { bad, added: distinct(bad.flatMap(addedBy)) }
}

function mustNotInclude(containers: readonly Container[], capabilities: readonly string[]): string {
  return `${containersText(containers)} must not include ${quotedList(capabilities)} in securityContext.capabilities.add`
}

const noEscalation: CheckFunction = ({ containers }) => {
  const bad = containers.filter(({ securityContext }) => securityContext?.allowPrivilegeEscalation !== false)
  if (bad.length === 0) return undefined
  return {
    reason: 'allowPrivilegeEscalation != false',
    detail: `${containersText(bad)} must set securityContext.allowPrivilegeEscalation=false`,
  }
}

export const allowPrivilegeEscalation: SecurityCheck = {
  name: 'allowPrivilegeEscalation',
  level: 'restricted',
  versions: [
    { since: 8, check: noEscalation },
    { since: 25, check: exceptOnWindows(noEscalation) },
  ],
}

export const runAsNonRoot: SecurityCheck = {
  name: 'runAsNonRoot',
  level: 'restricted',
  versions: [
    {
      since: 0,
      check({ spec, containers }) {
        const ofPod = spec.securityContext?.runAsNonRoot
        const refusing = containers.filter(({ securityContext }) => securityContext?.runAsNonRoot === false)
        const setters = settersText(ofPod === false, refusing)
        const reason = 'runAsNonRoot != true'
        if (setters !== '') return { reason, detail: `${setters} must not set securityContext.runAsNonRoot=false` }
        const unset = containers.filter(({ securityContext }) => securityContext?.runAsNonRoot === undefined)
        if (ofPod === true || unset.length === 0) return undefined
        return { reason, detail: `pod or ${containersText(unset)} must set securityContext.runAsNonRoot=true` }
      },
    },
  ],
}

export const runAsUser: SecurityCheck = {
  name: 'runAsUser',
  level: 'restricted',
  versions: [
    {
      since: 23,
      check({ spec, containers }) {
        const roots = containers.filter(({ securityContext }) => securityContext?.runAsUser === 0)
        const setters = settersText(spec.securityContext?.runAsUser === 0, roots)
        return setters === '' ? undefined : { reason: 'runAsUser=0', detail: `${setters} must not set runAsUser=0` }
      },
    },
  ],
}
