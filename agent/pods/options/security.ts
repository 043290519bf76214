/** The security context of a pod and of one container → the user, groups and privileges of its processes. A field of the container overrides the pod's. */
import type { Container, Pod } from '../../../api/pod.ts'
import type { ContainerSecurity } from '../../runtime/runtime.ts'

export type Secured =
  | { readonly ok: true; readonly security: ContainerSecurity }
  | { readonly ok: false; readonly message: string }

/** The result depends on the user that the image specifies. */
export function asksForImageUser(pod: Pod, container: Container): boolean {
  const { runAsUser, runAsGroup, runAsNonRoot } = merged(pod, container)
  return runAsUser === undefined && (runAsNonRoot === true || runAsGroup !== undefined)
}

/**
 * `imageUser`: as the image names it (`user`, `user:group`), when that was asked for. `seccompDefault`: see decision 34 (docs/decisions).
 */
export function containerSecurity(pod: Pod, container: Container, imageUser = '', seccompDefault = true): Secured {
  const context = merged(pod, container)
  const refusal = context.runAsNonRoot === true ? whyRoot(pod, container, context.runAsUser, imageUser) : undefined
  if (refusal !== undefined) return { ok: false, message: refusal }
  const { runAsUser, runAsGroup, capabilities = {}, privileged = false } = context
  const [ownUser = ''] = imageUser.split(':')
  const user = runAsUser ?? (runAsGroup === undefined ? undefined : ownUser || '0')
  const { fsGroup, supplementalGroups = [] } = pod.spec.securityContext ?? {}
  return {
    ok: true,
    security: {
      user: user === undefined ? undefined : [user, runAsGroup].filter((id) => id !== undefined).join(':'),
      groups: [...new Set([...(fsGroup === undefined ? [] : [fsGroup]), ...supplementalGroups])],
      addCapabilities: capabilities.add ?? [],
      dropCapabilities: capabilities.drop ?? [],
      privileged,
      readOnlyRootFilesystem: context.readOnlyRootFilesystem === true,
      mayGainPrivileges: context.allowPrivilegeEscalation !== false,
      seccomp: profileOf(context.seccompProfile ?? (seccompDefault ? undefined : { type: 'Unconfined' })),
      appArmor: profileOf(context.appArmorProfile),
      seLinux: Object.fromEntries(
        Object.entries(context.seLinuxOptions ?? {}).flatMap(([part, value]) => (value ? [[part, value]] : [])),
      ),
    },
  }
}

/** The user of all containers of the pod; undefined where they differ, or one does not state it (FsUserFrom in pkg/volume/util/util.go). */
export function onlyUser(pod: Pod): number | undefined {
  const { initContainers = [], containers } = pod.spec
  const [first, ...others] = [...initContainers, ...containers].map((container) => merged(pod, container).runAsUser)
  return others.every((user) => user === first) ? first : undefined
}

function merged({ spec }: Pod, { securityContext = {} }: Container) {
  const { runAsUser, runAsGroup, runAsNonRoot, seccompProfile, appArmorProfile, seLinuxOptions } =
    spec.securityContext ?? {}
  return {
    ...securityContext,
    runAsUser: securityContext.runAsUser ?? runAsUser,
    runAsGroup: securityContext.runAsGroup ?? runAsGroup,
    runAsNonRoot: securityContext.runAsNonRoot ?? runAsNonRoot,
    seccompProfile: securityContext.seccompProfile ?? seccompProfile,
    appArmorProfile: securityContext.appArmorProfile ?? appArmorProfile,
    seLinuxOptions: securityContext.seLinuxOptions ?? seLinuxOptions,
  }
}

function whyRoot(
  { metadata }: Pod,
  { name }: Container,
  runAsUser: number | undefined,
  imageUser: string,
): string | undefined {
  const where = `(pod: "${metadata.name}_${metadata.namespace ?? 'default'}(${metadata.uid})", container: ${name})`
  if (runAsUser === 0) return `container's runAsUser breaks non-root policy ${where}`
  if (runAsUser !== undefined) return undefined
  const [user = ''] = imageUser.split(':')
  if (user === '' || /^0+$/.test(user)) return `container has runAsNonRoot and image will run as root ${where}`
  if (/^\d+$/.test(user)) return undefined
  return `container has runAsNonRoot and image has non-numeric user (${user}), cannot verify user is non-root ${where}`
}

function profileOf(profile: { readonly type: string; readonly localhostProfile?: string } | undefined) {
  if (profile?.type === 'Unconfined') return { kind: 'none' as const }
  if (profile?.type === 'Localhost') return { kind: 'own' as const, name: profile.localhostProfile ?? '' }
  return { kind: 'standard' as const }
}
