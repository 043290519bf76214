/** What Docker refuses, in words for who wrote the pod: without its inner workings, with the field and what to do. */

/** What Docker, containerd and runc put before their errors. */
const noise = [
  /failed to create (?:shim )?task(?: for container)?: /,
  /OCI runtime create failed: /,
  /runc create failed: /,
  /container_linux\.go:\d+: /,
  /starting container process caused(?: ".*?")?: /,
  /unable to start container process: /,
  /error during container init: /,
  /driver failed programming external connectivity on endpoint \S+ \([0-9a-f]+\): /,
  /Error starting userland proxy: /,
]
const storages: ReadonlySet<string> = new Set(['overlay2', 'overlayfs', 'aufs', 'btrfs', 'vfs', 'snapshots'])

/** Who wrote the pod may have written most of it: a word of an error is as long as a word of the pod. */
const mostText = 2_048
const mostTail = 512

type Remedy = readonly [RegExp, string]

const remedies: readonly Remedy[] = [
  [
    /gathering device information|no such device/i,
    'the device is not on this node: plug it in, or correct `devices` in the agent’s configuration',
  ],
  [
    /port is already allocated|address already in use/i,
    'ports[].hostPort: a process of this node that is no pod has it; stop that, or choose another hostPort',
  ],
  [
    /unable to find (?:user|group)|no matching entries in (?:passwd|group) file/i,
    'the image names a user it does not have: set securityContext.runAsUser to a number',
  ],
  [/unknown capability/i, 'securityContext.capabilities: see capabilities(7), without the CAP_ in front'],
  [/minimum memory limit/i, 'resources.limits.memory: ask for 6Mi or more'],
  [/working directory .* invalid/i, 'workingDir: write it from / on'],
  [/cannot mkdir: /i, 'workingDir: it is no directory of the image; choose another'],
  [/inside \/proc/i, 'volumeMounts[].mountPath: choose a place outside /proc'],
  [/destination can't be '\/'/i, 'volumeMounts[].mountPath: choose a place below /'],
  [/duplicate mount point/i, 'volumeMounts[].mountPath: every place once'],
  [
    /error mounting .*read-only file system/i,
    'volumeMounts[].mountPath: it lies in a volume that is mounted read-only; make that writable or mount elsewhere',
  ],
  [
    /error mounting .*not a directory/i,
    'volumeMounts[].mountPath: a file can only be mounted on a file, a folder on a folder; look at mountPath, subPath and hostPath',
  ],
  [
    /not a shared mount/i,
    'volumeMounts[].mountPropagation: make the mount of the node shared (mount --make-rshared), or use None',
  ],
  [
    /exec: .*no such file or directory|executable file not found/i,
    'command: the image has no such program (or not the interpreter or libraries it needs)',
  ],
  [
    /exec: .*permission denied/i,
    'command: it is no program that may be run; look at its mode and at securityContext.runAsUser',
  ],
  [/exec format error/i, 'image: it is made for another kind of processor than this node’s'],
  [/apparmor/i, 'securityContext.appArmorProfile: load the profile on this node with apparmor_parser, or name another'],
  [/seccomp/i, 'securityContext.seccompProfile: look at the file in `seccomp` of the agent’s data directory'],
  [/sysctl/i, 'securityContext.sysctls: this kernel does not have it, or not for pods'],
  [
    /pool overlaps/i,
    'another Docker network has addresses of this node’s podCIDR, and Docker does not list it: restart Docker, or give the fleet another clusterCIDR',
  ],
]

/** Both ends of what is too long: Docker says first what it did, and last what was in the way. */
export function shortened(text: string): string {
  return text.length <= mostText ? text : `${text.slice(0, mostText - mostTail)} … ${text.slice(-mostTail)}`
}

/** The same text for the same refusal, whatever container it was. Of a shortened text. */
export function plainly(text: string): string {
  const bare = noise.reduce((rest, words) => rest.replace(words, ''), text).replace(/: unknown(?=$|:|\.)/, '')
  const clean = bare.replace(/\/[^\s"]+/g, insideImage).trim()
  const [, remedy] = remedies.find(([pattern]) => pattern.test(text)) ?? []
  return remedy === undefined ? clean : `${clean} (${remedy})`
}

/** Where an image is laid out differs from try to try: the path from the image's own root. */
function insideImage(path: string): string {
  const parts = path.split('/')
  const storage = parts.findLastIndex((part) => storages.has(part))
  const root = parts.findIndex((part, index) => index > storage && /^(?:merged|rootfs|fs)(?=$|:)/.test(part))
  if (storage < 0 || root < 0) return path
  return parts
    .slice(root)
    .join('/')
    .replace(/^(?:merged|rootfs|fs)/, '')
}
