import { createHash, randomBytes } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type Test, test } from 'tap'
import { decodeToken } from '../../../api/node/bootstrap-token.ts'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { madeCard, madeFat, putFiles } from '../../testing/made-card.ts'
import { openSecretsDoor } from '../../testing/secrets-door.ts'
import { cardCommand } from './card-command.ts'

async function aFleet(t: Test, issue = 'Raspberry Pi reference 2025-12-04\nGenerated using pi-gen\n') {
  const folder = testFolder(t)
  const door = await openSecretsDoor(join(folder, 'authority'))
  t.teardown(() => door.close())
  await writeFile(join(folder, 'kubeconfig'), door.kubeconfig)
  const system = { 'cmdline.txt': 'root=x', 'config.txt': 'auto_initramfs=1', 'issue.txt': issue, 'kernel8.img': 'k' }
  await writeFile(join(folder, 'in.img'), madeCard(await putFiles(madeFat(), system)))
  await mkdir(join(folder, 'packages'))
  await writeFile(join(folder, 'packages/bramble-archive-keyring_1_all.deb'), '!<arch>\n')
  const type = async (...argv: readonly string[]) => {
    let [stdout, stderr] = ['', '']
    const code = await cardCommand([...argv, '--data-dir', folder], {
      stdout: (text) => {
        stdout += text
      },
      stderr: (text) => {
        stderr += text
      },
      signal: new AbortController().signal,
      nowMs: Date.now(),
      randomBytes,
    })
    return { code, stdout, stderr }
  }
  const out = join(folder, 'card.img')
  const usual = [join(folder, 'in.img'), '--out', out, '--packages', join(folder, 'packages')] as const
  return { door, type, out, usual, tokens: () => [...door.secrets.values()].map(decodeToken) }
}

test('a card gets a token of its own, which is named with its end', async (t) => {
  const { type, usual, out, tokens, door } = await aFleet(t)
  const { code, stdout, stderr } = await type(...usual, '--ttl', '2h', '--node-name', 'kitchen')
  t.equal(code, 0, stderr)
  const [token] = tokens()
  t.match(token, { groups: ['system:bootstrappers:kubeadm:default-node-token'], description: `the card ${out}` })
  t.match(stdout, `${out}: Raspberry Pi reference 2025-12-04, for the fleet at https://fleet.example:6443\n`)
  t.match(
    stdout,
    `The token ${token?.id} expires at ${token?.expiration}; 'bramble-controller token delete ${token?.id}'`,
  )
  t.notMatch(stdout + stderr, token?.secret ?? 'none', 'its secret is on the card only')
  const list = JSON.parse(await readFile(out.replace('.img', '.rpi-imager-manifest'), 'utf8'))
  t.match(list.os_list, [
    { name: 'Raspberry Pi reference 2025-12-04 for fleet.example:6443', url: `file://${out}`, init_format: 'systemd' },
  ])
  const bytes = await readFile(out)
  t.equal(list.os_list[0].extract_sha256, createHash('sha256').update(bytes).digest('hex'))
  t.notMatch(JSON.stringify(list), token?.secret ?? 'none')
  const card = bytes.toString('latin1')
  t.match(
    card,
    `controller: https://fleet.example:6443\ntoken: ${token?.id}.${token?.secret}\ncaHash: ${door.caHash}\nnodeName: kitchen\n`,
  )
})

test('no token is left where no card is made', async (t) => {
  const { type, usual, tokens } = await aFleet(t, 'Ubuntu\n')
  t.match(await type(...usual), { code: 1, stdout: '', stderr: /in\.img is not Raspberry Pi OS/ })
  t.same(tokens(), [])
})

test('what was typed wrongly is named', async (t) => {
  const { type, usual, door } = await aFleet(t)
  const [image, ...options] = usual
  for (const [argv, expected] of [
    [options, /^Missing argument: use IMAGE\./],
    [[image, '--packages', 'x'], /^Give the file to write with --out, or --offer\./],
    [[...usual, '--offer'], /^Leave out --out: /],
    [[image, '--packages', 'x', '--offer', '--node-name', 'kitchen'], /^Leave out --node-name: /],
    [['my image.img', '--packages', 'x', '--offer'], /^Invalid value "my image.img" for IMAGE/],
    [[...usual, '--ttl', '0'], /^Invalid value "0" for --ttl/],
    [[...usual, '--ttl', 'soon'], /^Invalid value "soon" for --ttl/],
    [[...usual, '--url', 'ftp://x'], /^Invalid value "ftp:\/\/x" for --url/],
    [[...usual, '--node-name', 'Küche'], /^Invalid value "Küche" for --node-name/],
  ] as const) {
    t.match(await type(...argv), { code: 64, stderr: expected })
  }
  const missing = /in\.img is Raspberry Pi OS: give the folder with the packages for the machine with --packages/
  t.match(await type(image, '--out', join(dirname(image), 'x.img')), { code: 1, stderr: missing })
  t.match(await type(image, '--out', 'x.img', '--packages', '/nowhere'), {
    code: 1,
    stderr: /Cannot read the packages in \/nowhere/,
  })
  t.equal(door.secrets.size, 0)
})
