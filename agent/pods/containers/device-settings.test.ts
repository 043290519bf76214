import { test } from 'tap'
import { type DeclaredDevices, declaredDevices } from './device-settings.ts'

type Written = Parameters<typeof declaredDevices>[0][number]

function declared(...written: readonly Written[]): readonly DeclaredDevices[] | readonly string[] {
  const problems: string[] = []
  const devices = declaredDevices(written, problems)
  return problems.length > 0 ? problems : devices
}

test('a device can be shared, be part of a group and have another path in the container', async (t) => {
  t.same(
    declared(
      { name: 'tun', paths: ['/dev/net/tun'], shared: 20 },
      { name: 'gpu', groups: [['/dev/dri/card0', '/dev/dri/render*']], shared: 4 },
      { name: 'zigbee', paths: ['/dev/serial/by-path/pci-0000:00:14.0-usb-0:1:1.0:/dev/ttyACM0'] },
    ),
    [
      { resource: 'bramble.dev/tun', paths: [{ pattern: '/dev/net/tun', target: undefined }], groups: [], shared: 20 },
      {
        resource: 'bramble.dev/gpu',
        paths: [],
        groups: [
          [
            { pattern: '/dev/dri/card0', target: undefined },
            { pattern: '/dev/dri/render*', target: undefined },
          ],
        ],
        shared: 4,
      },
      {
        resource: 'bramble.dev/zigbee',
        paths: [{ pattern: '/dev/serial/by-path/pci-0000:00:14.0-usb-0:1:1.0', target: '/dev/ttyACM0' }],
        groups: [],
        shared: 1,
      },
    ],
  )
})

test('a mistake is reported with its field, its value and what is allowed', async (t) => {
  const inContainer = 'must name a path below /dev in the container, without * and ?, after the ":"'
  const cases: readonly (readonly [Written, string])[] = [
    [{ name: 'a' }, 'devices[0]: a has neither paths nor groups; list the paths of its devices'],
    [{ name: 'a', paths: [], shared: 0 }, 'devices[0].shared: 0 must be from 1 to 1000'],
    [{ name: 'a', paths: [], shared: 1001 }, 'devices[0].shared: 1001 must be from 1 to 1000'],
    [{ name: 'a', groups: [['/dev/b'], []] }, 'devices[0].groups[1]: must list at least one path'],
    [
      { name: 'a', groups: [['/etc/b']] },
      'devices[0].groups[0]: /etc/b must be below /dev, with * and ? in its last part only',
    ],
    [{ name: 'a', paths: ['/dev/b:/etc/b'] }, `devices[0].paths: /dev/b:/etc/b ${inContainer}`],
    [{ name: 'a', paths: ['/dev/b:/dev/../b'] }, `devices[0].paths: /dev/b:/dev/../b ${inContainer}`],
    [{ name: 'a', paths: ['/dev/b*:/dev/b*'] }, `devices[0].paths: /dev/b*:/dev/b* ${inContainer}`],
    [
      { name: 'a', groups: [['/dev/b*:/dev/c']] },
      'devices[0].groups[0]: /dev/b*:/dev/c must not contain * or ?: one path in the container is for one device',
    ],
    [
      { name: 'a', groups: [['/dev/b:/dev/c', '/dev/c']] },
      'devices[0].groups[0]: /dev/c is the path in the container of two devices; give one of them another',
    ],
  ]
  for (const [written, problem] of cases) t.same(declared(written), [problem])
  t.match(declared({ name: 'a', paths: ['/dev/b*:/dev/c'], shared: 1000 }), [{ shared: 1000 }])
})
