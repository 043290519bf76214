/** A share of a NAS → the command that mounts it, or why it must not be mounted. Pure. Every field comes from the API. */
import type { NasShare } from '../../../api/storage/shares.ts'

export type ShareUser = { readonly username: string; readonly password: string; readonly domain?: string }

/** `user`: of an SMB share. `group`: the fsGroup of the pod, which gets the files of an SMB share. */
export type MountedShare = Omit<NasShare, 'secret'> & { readonly user?: ShareUser; readonly group?: number }

/** In the PATH of the agent. mount(8) is left out: it would handle options of its own, and start other programs. */
export const shareHelpers = { nfs: 'mount.nfs', smb: 'mount.cifs' } as const

export type ShareMount = {
  readonly helper: (typeof shareHelpers)[NasShare['kind']]
  /** The Debian package that has it. */
  readonly package: string
  readonly source: string
  readonly options: readonly string[]
  readonly port: number
}

export type ShareMountResult = { readonly ok: true; readonly value: ShareMount } | Refused
type Refused = { readonly ok: false; readonly message: string }

const longestPath = 1_024
const host = /^[A-Za-z0-9]([-A-Za-z0-9._]{0,251}[A-Za-z0-9])?$/
const addressV6 = /^[0-9A-Fa-f:.]{2,45}(%[A-Za-z0-9._-]{1,15})?$/

/** `hard`: programs wait for a server that is away, and lose nothing. `retry=0`: the agent itself tries again. */
const usual = {
  nfs: ['hard', 'timeo=600', 'retrans=2', 'retry=0', 'noatime', 'nosuid', 'nodev'],
  smb: ['echo_interval=10', 'nosuid', 'nodev'],
}

const kinds = {
  nfs: { package: 'nfs-common', port: 2049 },
  smb: { package: 'cifs-utils', port: 445 },
}

export function shareMount(share: MountedShare): ShareMountResult {
  const { kind, readOnly = false } = share
  const own = (share.mountOptions ?? []).flatMap((option) => option.split(',')).filter((option) => option !== '')
  const wrong = serverProblem(share) ?? pathProblem(share) ?? firstOptionProblem(kind, own)
  if (wrong !== undefined) return refused(wrong)
  const names = new Set(own.map(nameOf))
  const usualOptions = kind === 'nfs' ? usual.nfs : [...usual.smb, ...smbOptions(share, names)]
  return {
    ok: true,
    value: {
      helper: shareHelpers[kind],
      package: kinds[kind].package,
      source: sourceOf(share),
      options: [...usualOptions, ...own, ...(readOnly && !names.has('ro') ? ['ro'] : [])],
      port: portIn(own) ?? kinds[kind].port,
    },
  }
}

function sourceOf({ kind, server, path }: MountedShare): string {
  if (kind === 'smb') return `//${server}${path}`
  return `${isAddressV6(server) ? `[${server}]` : server}:${path}`
}

/** The port of the last option that names one; 0 does not count. */
function portIn(options: readonly string[]): number | undefined {
  const port = options.findLast((option) => /^port=\d{1,5}$/.test(option))
  return Number(port?.slice('port='.length)) || undefined
}

function isAddressV6(server: string): boolean {
  return server.includes(':') && addressV6.test(server)
}

function serverProblem({ server }: MountedShare): string | undefined {
  const isServer = isAddressV6(server) || host.test(server)
  return isServer ? undefined : `${JSON.stringify(server.slice(0, 64))} is not the name of a server`
}

function firstOptionProblem(kind: NasShare['kind'], options: readonly string[]): string | undefined {
  for (const option of options) {
    const wrong = optionProblem(kind, option)
    if (wrong !== undefined) return wrong
  }
  return undefined
}

/** Who may use the files is decided here: an SMB server has one user for all of them. */
function smbOptions({ user, group }: MountedShare, names: ReadonlySet<string>): readonly string[] {
  const isGuest = user === undefined && !names.has('guest') && !names.has('sec')
  const mode = group === undefined ? '0777' : '0770'
  return [
    ...(isGuest ? ['guest'] : []),
    ...(group === undefined || names.has('gid') ? [] : [`gid=${group}`]),
    ...(names.has('file_mode') ? [] : [`file_mode=${mode}`]),
    ...(names.has('dir_mode') ? [] : [`dir_mode=${mode}`]),
  ]
}

function pathProblem({ kind, path }: MountedShare): string | undefined {
  const shown = JSON.stringify(path.slice(0, 128))
  if (!path.startsWith('/')) return `${shown} is not an absolute path`
  if (path.length > longestPath || hasControl(path)) return `${shown} is not a path of a share`
  if (path.split('/').includes('..')) return `${shown} must not contain '..'`
  // mount.cifs passes it on among the options.
  if (kind === 'smb' && (/[,"\\]/.test(path) || !/^\/[^/]/.test(path))) return `${shown} is not a path of an SMB share`
  return undefined
}

/** They start other programs, read files of this machine, outlast the deadline of the mount, or change another mount. */
const harmful = [
  ...['bg', 'background', 'remount', 'bind', 'rbind', 'move', 'loop', 'helper', 'uhelper'],
  ...['user', 'users', 'owner', 'group'],
]
const ofTheSecret = ['credentials', 'cred', 'username', 'user', 'password', 'pass', 'password2', 'pass2']

function optionProblem(kind: NasShare['kind'], option: string): string | undefined {
  const name = nameOf(option)
  const shown = JSON.stringify(name.slice(0, 64))
  // Values are not shown: one may be a password.
  if (option.length > 256 || hasControl(option) || /["'\\\s]/.test(option))
    return `the mount option ${shown} is not allowed`
  if (kind === 'smb' && ofTheSecret.includes(name)) {
    return `the mount option ${shown} is not allowed: put username and password into a Secret`
  }
  const isHarmful = harmful.includes(name) || name.startsWith('x-mount.')
  return isHarmful || !/^[a-z_][a-z0-9_.-]*$/.test(name) ? `the mount option ${shown} is not allowed` : undefined
}

function nameOf(option: string): string {
  return (option.split('=')[0] ?? '').toLowerCase()
}

function hasControl(value: string): boolean {
  return [...value].some((character) => character < ' ' || character === '\x7f')
}

/** The user in a Secret of the share. The values are lines of a file: one must not add another. */
export function shareUser(data: { readonly [key: string]: string }): ShareUser | Refused {
  const [username, password, domain] = ['username', 'password', 'domain'].map((key) =>
    data[key] === undefined ? undefined : Buffer.from(data[key], 'base64').toString('utf8'),
  )
  if (!username) return refused('the Secret of the share has no username')
  for (const [key, value] of Object.entries({ username, password, domain })) {
    if (value !== undefined && (hasControl(value) || value.length > 512)) {
      return refused(`the ${key} in the Secret of the share has a line break or another control character`)
    }
  }
  return { username, password: password ?? '', ...(domain && { domain }) }
}

function refused(message: string): Refused {
  return { ok: false, message }
}
