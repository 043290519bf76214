/** Known refusals of the container runtime: the field of the pod or setting of the node that causes each, and what to change. */

type Remedy = readonly [RegExp, string]

const remedies: readonly Remedy[] = [
  [
    /gathering device information|no such device/i,
    'the device is not on this node: plug it in, or correct `devices` in the agent’s configuration',
  ],
  [
    /port is already allocated|address already in use/i,
    'ports[].hostPort: a process outside of pods uses it on this node; stop that process, or choose another hostPort',
  ],
  [
    /unable to find (?:user|group)|no matching entries in (?:passwd|group) file/i,
    'the image names a user it does not have: set securityContext.runAsUser to a number',
  ],
  [/unknown capability/i, 'securityContext.capabilities: see capabilities(7), without the CAP_ in front'],
  [/minimum memory limit/i, 'resources.limits.memory: set 6Mi or more'],
  [/working directory .* invalid/i, 'workingDir must be an absolute path'],
  [/cannot mkdir: /i, 'workingDir is not a directory in the image; choose another'],
  [/inside \/proc/i, 'volumeMounts[].mountPath: choose a path outside /proc'],
  [/destination can't be '\/'/i, 'volumeMounts[].mountPath: choose a path below /'],
  [/duplicate mount point/i, 'volumeMounts[].mountPath: use every path once only'],
  [
    /error mounting .*read-only file system/i,
    'volumeMounts[].mountPath: it is inside a volume that is mounted read-only; make that volume writable, or choose another path',
  ],
  [
    /error mounting .*not a directory/i,
    'volumeMounts[].mountPath: a file can only be mounted on a file, a folder on a folder; check mountPath, subPath and hostPath',
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
    'command: this user may not run it; check its file mode and securityContext.runAsUser',
  ],
  [/exec format error/i, 'image: it is built for another CPU architecture than this node’s'],
  [/apparmor/i, 'securityContext.appArmorProfile: load the profile on this node with apparmor_parser, or name another'],
  [/seccomp/i, 'securityContext.seccompProfile: check the file in the folder `seccomp` of the agent’s data directory'],
  [
    /user namespaces/i,
    'hostNetwork, hostPID or privileged: Docker remaps the users of containers; remove "userns-remap" from /etc/docker/daemon.json',
  ],
  [/sysctl/i, 'securityContext.sysctls: this kernel does not support it, or not for pods'],
  [
    /pool overlaps/i,
    'another Docker network has addresses of this node’s podCIDR, and Docker does not list it: restart Docker, or give the fleet another clusterCIDR',
  ],
]

/** Matches the runtime's text; undefined if it is not a known refusal. */
export function refusalRemedy(text: string): string | undefined {
  return remedies.find(([pattern]) => pattern.test(text))?.[1]
}
