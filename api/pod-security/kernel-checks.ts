/** Checks of what confines a process in the kernel: AppArmor, SELinux, seccomp, /proc and sysctls. */
import type { Container } from '../pod.ts'
import { fieldOf } from '../text/json.ts'
import {
  type CheckedPod,
  type CheckFunction,
  type Confined,
  containersText,
  distinct,
  exceptOnWindows,
  plural,
  quotedList,
  type SecurityCheck,
  settersText,
} from './security-check.ts'

const appArmorPrefix = 'container.apparmor.security.beta.kubernetes.io/'

export const appArmorProfile: SecurityCheck = {
  name: 'appArmorProfile',
  level: 'baseline',
  versions: [
    {
      since: 0,
      check(pod) {
        const { fields, types } = profileSetters(pod, 'appArmorProfile')
        const annotations = Object.entries(pod.annotations)
          .filter(([key, value]) => key.startsWith(appArmorPrefix) && !isAllowedAppArmor(value))
          .map(([key, value]) => annotationText(key, value))
          .sort()
        const setters = [
          ...(fields === '' ? [] : [fields]),
          ...(annotations.length === 0 ? [] : [plural('annotation', annotations)]),
        ]
        if (setters.length === 0) return undefined
        const values = [...types, ...annotations]
        return {
          reason: plural('forbidden AppArmor profile', values),
          detail: `${setters.join(' and ')} must not set AppArmor profile type to ${quotedList(values)}`,
        }
      },
    },
  ],
}

function isAllowedAppArmor(value: string): boolean {
  return value === '' || value === 'runtime/default' || value.startsWith('localhost/')
}

/** As Go's `%s=%q`. */
function annotationText(key: string, value: string): string {
  return `${key}=${JSON.stringify(value)}`
}

/** What sets the profile to a type that is not allowed, and these types. */
function profileSetters({ spec, containers }: CheckedPod, field: 'appArmorProfile' | 'seccompProfile') {
  const forbiddenType = ({ securityContext }: Confined) => {
    const type = securityContext?.[field]?.type
    return type === undefined || type === 'RuntimeDefault' || type === 'Localhost' ? undefined : type
  }
  const bad = containers.filter((container) => forbiddenType(container) !== undefined)
  const types = distinct([spec, ...bad].flatMap((one) => forbiddenType(one) ?? []))
  return { fields: settersText(forbiddenType(spec) !== undefined, bad), types }
}

export const seLinuxOptions: SecurityCheck = {
  name: 'seLinuxOptions',
  level: 'baseline',
  versions: [
    { since: 0, check: seLinuxTypes(['', 'container_t', 'container_init_t', 'container_kvm_t']) },
    {
      since: 31,
      check: seLinuxTypes(['', 'container_t', 'container_init_t', 'container_kvm_t', 'container_engine_t']),
    },
  ],
}

function seLinuxTypes(allowed: readonly string[]): CheckFunction {
  return ({ spec, containers }) => {
    const optionsOf = ({ securityContext }: Confined) => securityContext?.seLinuxOptions ?? {}
    const isBad = (one: Confined) => {
      const { type = '', user = '', role = '' } = optionsOf(one)
      return !allowed.includes(type) || user !== '' || role !== ''
    }
    const bad = containers.filter(isBad)
    const setters = settersText(isBad(spec), bad)
    if (setters === '') return undefined
    const all = [spec, ...bad].map(optionsOf)
    const types = distinct(all.flatMap(({ type = '' }) => (allowed.includes(type) ? [] : [type])))
    const values = [
      ...(types.length === 0 ? [] : [`${plural('type', types)} ${quotedList(types)}`]),
      ...(all.some(({ user = '' }) => user !== '') ? ['user may not be set'] : []),
      ...(all.some(({ role = '' }) => role !== '') ? ['role may not be set'] : []),
    ]
    const detail = `${setters} set forbidden securityContext.seLinuxOptions: ${values.join('; ')}`
    return { reason: 'seLinuxOptions', detail }
  }
}

/** In 1.32 UserNamespacesPodSecurityStandards, which allows more in a user namespace, is off; nodes run no pod in one. */
export const procMount: SecurityCheck = {
  name: 'procMount',
  level: 'baseline',
  versions: [
    {
      since: 0,
      check({ containers }) {
        const typeOf = ({ securityContext }: Container) => securityContext?.procMount ?? 'Default'
        const bad = containers.filter((container) => typeOf(container) !== 'Default')
        if (bad.length === 0) return undefined
        const types = quotedList(distinct(bad.map(typeOf)))
        return {
          reason: 'procMount',
          detail: `${containersText(bad)} must not set securityContext.procMount to ${types}`,
        }
      },
    },
  ],
}

const seccompOfPod = 'seccomp.security.alpha.kubernetes.io/pod'
const seccompPrefix = 'container.seccomp.security.alpha.kubernetes.io/'

/** Before the field there were annotations. */
const seccompAnnotations: CheckFunction = ({ annotations, containers }) => {
  const keys = [seccompOfPod, ...containers.map(({ name }) => `${seccompPrefix}${name}`)]
  const bad = distinct(
    keys.flatMap((key) => {
      const value = fieldOf(annotations, key)
      return typeof value !== 'string' || isAllowedSeccomp(value) ? [] : [annotationText(key, value)]
    }),
  )
  if (bad.length === 0) return undefined
  return { reason: 'seccompProfile', detail: `forbidden ${plural('annotation', bad)} ${bad.join(', ')}` }
}

function isAllowedSeccomp(value: string): boolean {
  return value === 'runtime/default' || value === 'docker/default' || value.startsWith('localhost/')
}

const seccompFields: CheckFunction = (pod) => {
  const { fields, types } = profileSetters(pod, 'seccompProfile')
  if (fields === '') return undefined
  return {
    reason: 'seccompProfile',
    detail: `${fields} must not set securityContext.seccompProfile.type to ${quotedList(types)}`,
  }
}

export const seccompProfileBaseline: SecurityCheck = {
  name: 'seccompProfile_baseline',
  level: 'baseline',
  versions: [
    { since: 0, check: seccompAnnotations },
    { since: 19, check: seccompFields },
  ],
}

const seccompIsSet: CheckFunction = (pod) => {
  const forbidden = seccompFields(pod)
  if (forbidden !== undefined || pod.spec.securityContext?.seccompProfile !== undefined) return forbidden
  const unset = pod.containers.filter(({ securityContext }) => securityContext?.seccompProfile === undefined)
  if (unset.length === 0) return undefined
  const must = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
  return { reason: 'seccompProfile', detail: `pod or ${containersText(unset)} ${must}` }
}

export const seccompProfileRestricted: SecurityCheck = {
  name: 'seccompProfile_restricted',
  level: 'restricted',
  replaces: 'seccompProfile_baseline',
  versions: [
    { since: 19, check: seccompIsSet },
    { since: 25, check: exceptOnWindows(seccompIsSet) },
  ],
}

const [since0, since27, since29, since32] = [
  [
    ...['kernel.shm_rmid_forced', 'net.ipv4.ip_local_port_range', 'net.ipv4.tcp_syncookies'],
    ...['net.ipv4.ping_group_range', 'net.ipv4.ip_unprivileged_port_start'],
  ],
  ['net.ipv4.ip_local_reserved_ports'],
  [
    ...['net.ipv4.tcp_keepalive_time', 'net.ipv4.tcp_fin_timeout', 'net.ipv4.tcp_keepalive_intvl'],
    ...['net.ipv4.tcp_keepalive_probes'],
  ],
  ['net.ipv4.tcp_rmem', 'net.ipv4.tcp_wmem'],
] as const

export const sysctls: SecurityCheck = {
  name: 'sysctls',
  level: 'baseline',
  versions: [
    { since: 0, check: onlySysctls(since0) },
    { since: 27, check: onlySysctls([...since0, ...since27]) },
    { since: 29, check: onlySysctls([...since0, ...since27, ...since29]) },
    { since: 32, check: onlySysctls([...since0, ...since27, ...since29, ...since32]) },
  ],
}

function onlySysctls(names: readonly string[]): CheckFunction {
  const allowed = new Set(names)
  return ({ spec }) => {
    const bad = (spec.securityContext?.sysctls ?? []).filter(({ name }) => !allowed.has(name))
    if (bad.length === 0) return undefined
    return { reason: 'forbidden sysctls', detail: bad.map(({ name }) => name).join(', ') }
  }
}
