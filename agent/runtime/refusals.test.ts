import { test } from 'tap'
import { refusalRemedy } from './refusals.ts'

const refusals: readonly (readonly [text: string, remedy: RegExp])[] = [
  [
    'error gathering device information while adding custom device "/dev/ttyUSB0": no such file',
    /^the device is not on/,
  ],
  ['Bind for 0.0.0.0:80 failed: port is already allocated', /hostPort/],
  ['unable to find user web: no matching entries in passwd file', /runAsUser/],
  ['invalid CapAdd: unknown capability: "CAP_NONE"', /capabilities/],
  ['Minimum memory limit allowed is 6MB', /6Mi/],
  ["the working directory 'here' is invalid, it needs to be an absolute path", /absolute path/],
  ['cannot mkdir: /etc/passwd: not a directory', /not a directory in the image/],
  ['cannot be mounted because it is inside /proc', /outside \/proc/],
  ["invalid volume specification: destination can't be '/'", /below \//],
  ['Duplicate mount point: /data', /once only/],
  ['error mounting "/v" to rootfs at "/data/sub": mkdir: read-only file system', /read-only/],
  ['error mounting "/v" to rootfs at "/data": mount: not a directory', /a file can only be mounted on a file/],
  ['path /v is mounted on / but it is not a shared mount', /mountPropagation/],
  ['exec: "/no/such": stat /no/such: no such file or directory', /no such program/],
  ['exec: "/data": permission denied', /file mode/],
  ['exec /run: exec format error', /CPU architecture/],
  ["cannot share the host's network namespace when user namespaces are enabled", /userns-remap/],
  ['apparmor failed to apply profile', /apparmor_parser/],
  ['seccomp: config provided but seccomp not supported', /seccompProfile/],
  ['open /proc/sys/net/none: sysctl is not known', /sysctls/],
  ['Pool overlaps with other one on this address space', /podCIDR/],
]

test('each known refusal names the field and what to change', async (t) => {
  for (const [text, remedy] of refusals) t.match(refusalRemedy(text), remedy, text)
})

test('of an unknown refusal there is no remedy', async (t) => {
  t.equal(refusalRemedy('layers from manifest do not match'), undefined)
})
