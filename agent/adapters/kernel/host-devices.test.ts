import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import type { DeclaredDevices } from '../../pods/containers/device-settings.ts'
import { deviceCapacity } from '../../pods/containers/devices.ts'
import { deviceNumber, findDevices } from './host-devices.ts'

function declared(
  name: string,
  paths: readonly string[],
  groups: readonly (readonly string[])[] = [],
  target?: string,
): DeclaredDevices {
  const written = (pattern: string) => ({ pattern, target })
  return {
    resource: `bramble.dev/${name}`,
    paths: paths.map(written),
    groups: groups.map((g) => g.map(written)),
    shared: 3,
  }
}

test('devices are found by their path, or by what their paths look like, in the order of the declaration', async (t) => {
  const found = await findDevices([
    declared('null', ['/dev/null']),
    declared('some', ['/dev/z?ro', '/dev/nul*', '/nowhere/*']),
    declared('none', ['/dev/no-such-thing', '/etc/passwd']),
  ])
  const sources = [...found].map(([resource, devices]) => [
    resource,
    devices.map(({ files }) => files.map(({ source }) => source)),
  ])
  t.same(sources, [
    ['bramble.dev/null', [['/dev/null']]],
    ['bramble.dev/some', [['/dev/zero'], ['/dev/null']]],
    ['bramble.dev/none', []],
  ])
})

test('a group is there if each of its paths is, and all of it is one device', async (t) => {
  const groups = [
    ['/dev/null', '/dev/z?ro'],
    ['/dev/null', '/dev/no-such-thing'],
  ]
  const found = await findDevices([declared('both', [], groups)])
  t.match(found.get('bramble.dev/both'), [{ files: [{ source: '/dev/null' }, { source: '/dev/zero' }], shared: 3 }])
  t.equal(found.get('bramble.dev/both')?.length, 1)
})

test('a device has the path in the container that is declared', async (t) => {
  const found = await findDevices([declared('other', ['/dev/null'], [], '/dev/other')])
  t.match(found.get('bramble.dev/other'), [{ files: [{ source: '/dev/null', target: '/dev/other' }] }])
})

test('a device and the links to it are one device, whatever its paths', async (t) => {
  const folder = testFolder(t)
  const links = ['by-id', 'by-path'].map((name) => join(folder, name))
  for (const link of links) await symlink('/dev/null', link)
  const [byId = ''] = links
  const found = await findDevices([
    declared('links', [join(folder, 'by-*'), '/dev/null']),
    declared('link-and-node', ['/dev/null', byId]),
    declared('others', ['/dev/null', '/dev/zero']),
  ])
  t.same(deviceCapacity(found), {
    'bramble.dev/links': 3,
    'bramble.dev/link-and-node': 3,
    'bramble.dev/others': 6,
  })
  t.match(
    found.get('bramble.dev/links')?.[0],
    { files: [{ source: '/dev/null', target: byId }] },
    'the link is resolved',
  )
  t.equal(await deviceNumber(byId), await deviceNumber('/dev/null'))
  t.not(await deviceNumber('/dev/zero'), await deviceNumber('/dev/null'))
  t.equal(await deviceNumber(folder), undefined)
  t.equal(await deviceNumber('/dev/no-such-thing'), undefined)
})
