import { test } from 'tap'
import type { Node } from '../../../api/node.ts'
import { nodesInPages } from './inventory-command.ts'
import { inventoryListing } from './inventory-listing.ts'

const inventory = {
  ...{ model: 'Raspberry Pi 4 Model B Rev 1.5', revision: 'c03115', board: '4B 1.5', memoryMegabytes: 4096 },
  ...{ bootloaderDate: '2024-04-15', bootloader: 'abc', maker: 'Sony UK' },
  disks: [{ name: 'mmcblk0', kind: 'SD', model: 'SC32G', bytes: 32 * 2 ** 30, made: '03/2021' }],
  links: [
    { name: 'eth0', driver: 'bcmgenet', isWireless: false, megabits: 1000 },
    { name: 'wlan0', driver: 'brcmfmac', isWireless: true },
  ],
}

test('machines are listed in the order of their names, also those that report nothing', (t) => {
  const lines = inventoryListing([aNode('pi-2', inventory), aNode('pi-1')], 'table').split('\n')
  t.match(lines[0], /^NODE +BOARD +MEMORY +DISKS +NETWORK +BOOT LOADER +SYSTEM$/)
  t.match(lines[1], /^pi-1 +Debian GNU\/Linux 13$/)
  t.match(
    lines[2],
    /^pi-2 +Raspberry Pi 4 Model B Rev 1\.5 +4\.0 GiB +SD 32 GiB +eth0 bcmgenet 1000 Mbit\/s, wlan0 Wi-Fi brcmfmac +2024-04-15/,
  )
  t.equal(lines.length, 4)
  t.end()
})

test('as CSV each machine is a line with every value, and as JSON an object', (t) => {
  const nodes = [aNode('pi-2', inventory)]
  t.equal(
    inventoryListing(nodes, 'csv'),
    'node,model,revision,board,maker,memory_megabytes,bootloader_date,bootloader,supply_milliamps,disks,network,system,kernel,architecture,agent\r\n' +
      'pi-2,Raspberry Pi 4 Model B Rev 1.5,c03115,4B 1.5,Sony UK,4096,2024-04-15,abc,,mmcblk0 SD SC32G 34359738368 made 03/2021,' +
      'eth0 bcmgenet 1000 Mbit/s; wlan0 Wi-Fi brcmfmac,Debian GNU/Linux 13,6.12.0,arm64,v1.32.0-bramble.1.0.0\r\n',
  )
  t.match(JSON.parse(inventoryListing(nodes, 'json')), {
    items: [{ node: 'pi-2', ...inventory, architecture: 'arm64' }],
  })
  t.end()
})

test('what a node writes is never a formula, a further column, a further line or a control of the terminal', (t) => {
  for (const [model, cell] of [
    ['=HYPERLINK("http://x")', `"'=HYPERLINK(""http://x"")"`],
    ['+1', "'+1"],
    ['-1', "'-1"],
    ['@SUM(A1)', "'@SUM(A1)"],
    ['a,b', '"a,b"'],
    ['a\r\nb', 'a??b'],
    ['\u001b[2Ja', '?[2Ja'],
  ]) {
    const [, line = '', ...more] = inventoryListing([aNode('pi-1', { model, disks: [], links: [] })], 'csv').split(
      '\r\n',
    )
    t.ok(line.startsWith(`pi-1,${cell},,`), line)
    t.same(more, [''])
  }
  t.match(inventoryListing([aNode('pi-1', { model: '\u001b[2Ja\nb', disks: [], links: [] })], 'table'), /\?\[2Ja\?b/)
  t.end()
})

test('the nodes of a large fleet are read in pieces', async (t) => {
  const asked: string[] = []
  const pages = [
    { items: [aNode('pi-1')], metadata: { continue: 'a=' } },
    { items: [aNode('pi-2')], metadata: {} },
  ]
  const nodes = await nodesInPages(answering(asked, 200, pages), new AbortController().signal)
  t.same(
    nodes.map(({ metadata }) => metadata.name),
    ['pi-1', 'pi-2'],
  )
  t.same(asked, ['/api/v1/nodes?limit=500', '/api/v1/nodes?limit=500&continue=a%3D'])
})

test('a refusal of the API is shown', async (t) => {
  const client = answering([], 403, [{ kind: 'Status', message: 'nodes is forbidden' }])
  await t.rejects(nodesInPages(client, new AbortController().signal), {
    message: 'Cannot list the nodes: nodes is forbidden (status 403)',
  })
})

function aNode(name: string, reported?: object): Node {
  const annotations = reported === undefined ? {} : { 'bramble.dev/inventory': JSON.stringify(reported) }
  const nodeInfo = {
    ...{ osImage: 'Debian GNU/Linux 13', kernelVersion: '6.12.0', architecture: 'arm64' },
    kubeletVersion: 'v1.32.0-bramble.1.0.0',
  }
  return { apiVersion: 'v1', kind: 'Node', metadata: { name, annotations }, status: { nodeInfo } } as Node
}

function answering(asked: string[], status: number, bodies: readonly object[]) {
  return {
    async get(path: string) {
      asked.push(path)
      return { status, body: bodies[asked.length - 1], dateHeader: undefined }
    },
  }
}
