/** Images in the forms of Raspberry Pi OS, and hostile ones, become cards or are refused. Needs xz. */
import { execFileSync } from 'node:child_process'
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { testFolder } from '../../daemon/testing/test-folder.ts'
import { madeCard, madeFat, putFiles } from '../testing/made-card.ts'
import { memoryDisk } from '../testing/memory-disk.ts'
import { readPackages } from './card-packages.ts'
import { FatVolume } from './fat/fat-volume.ts'
import { makeCard } from './make-card.ts'
import { storageScript } from './storage-script.ts'

const nowMs = Date.UTC(2026, 10, 29)
const fleet = {
  server: 'https://fleet.example:6443',
  caHash: `sha256:${'a'.repeat(64)}`,
  token: { id: 'abcdef', secret: '0123456789abcdef' },
  expiration: '2026-11-30T00:00:00Z',
}
const system = {
  'cmdline.txt': 'console=tty1 root=PARTUUID=1-02 rootwait\n',
  'config.txt': 'auto_initramfs=1\n',
  'issue.txt': 'Raspberry Pi reference 2025-12-04\nGenerated using pi-gen, x, stage2\n',
  'kernel8.img': 'k'.repeat(9000),
}
const fatStart = 16 * 512

async function place(t: Test, image?: Buffer) {
  const folder = testFolder(t)
  const packages = join(folder, 'packages')
  execFileSync('mkdir', [packages])
  for (const name of ['bramble-agent_1_arm64.deb', 'bramble-runtime_1_arm64.deb']) {
    await writeFile(join(packages, name), `!<arch>\n${name.repeat(1000)}`)
  }
  const source = join(folder, 'in.img')
  const target = join(folder, 'card.img')
  await writeFile(source, image ?? madeCard(await putFiles(madeFat(), system)))
  const progress: string[] = []
  let asked = 0
  const make = async (change: Partial<Parameters<typeof makeCard>[0]> = {}, signal = new AbortController().signal) =>
    makeCard(
      {
        source,
        target,
        isReplaced: false,
        nodeName: undefined,
        isReadOnly: false,
        packages: await readPackages(packages),
        nowMs,
        ...change,
      },
      {
        signal,
        progress: (text) => void progress.push(text),
        async join() {
          asked++
          return fleet
        },
      },
    )
  return { folder, source, target, make, progress, asked: () => asked }
}

const bootOf = (image: Buffer) => {
  const size = image.readUInt32LE(446 + 12) * 512
  return FatVolume.open(memoryDisk(image.subarray(fatStart, fatStart + size)), nowMs)
}

test('a card has the terms of the join, the packages with their digests and the words for the kernel', async (t) => {
  const { target, make } = await place(t)
  const { form } = await make({ nodeName: 'kitchen' })
  t.match(form, { initFormat: 'systemd', system: 'Raspberry Pi reference 2025-12-04' })
  const fat = await bootOf(await readFile(target))
  const text = async (...path: readonly string[]) => String(await fat.read(path, 1e6))
  t.match(
    await text('bramble.yaml'),
    /\ncontroller: https:\/\/fleet.example:6443\ntoken: abcdef.0123456789abcdef\ncaHash: sha256:a{64}\nnodeName: kitchen\n$/,
  )
  t.match(await text('bramble.yaml'), /The token expires at 2026-11-30T00:00:00Z/)
  t.match(
    await text('cmdline.txt'),
    /^console=tty1 root=PARTUUID=1-02 rootwait cgroup_enable=memory .*kernel-command-line.target\n$/,
  )
  t.match(
    await text('bramble', 'SHA256SUMS'),
    /^[0-9a-f]{64} {2}packages\/bramble-agent_1_arm64.deb\n[0-9a-f]{64} {2}packages\/bramble-runtime/,
  )
  t.match(await text('bramble', 'packages', 'bramble-agent_1_arm64.deb'), /^!<arch>\nbramble-agent_1/)
  t.match(await text('bramble', 'first-boot.sh'), /^#!\/bin\/sh\n/)
  t.equal(await text('kernel8.img'), system['kernel8.img'])
  t.equal((await stat(target)).mode & 0o777, 0o600, 'only its owner reads the token')
})

test('outside of the boot partition every byte is as it was', async (t) => {
  const { source, target, make } = await place(t)
  await make()
  const [before, after] = [await readFile(source), await readFile(target)]
  const size = before.readUInt32LE(446 + 12) * 512
  t.equal(after.length, before.length)
  t.ok(after.subarray(0, fatStart).equals(before.subarray(0, fatStart)), 'the table of partitions and the gap')
  t.ok(after.subarray(fatStart + size).equals(before.subarray(fatStart + size)), 'the root partition')
})

test('a card can be made from a card: one set of files, the new token, and no status of a machine', async (t) => {
  const { folder, target, make } = await place(t)
  await make()
  await make({ source: target, target: join(folder, 'second.img') })
  const [first, second] = [await readFile(target), await readFile(join(folder, 'second.img'))]
  const [one, two] = [await bootOf(first), await bootOf(second)]
  t.same((await two.list([]))?.toSorted(), (await one.list([]))?.toSorted())
  t.same(await two.read(['cmdline.txt'], 9999), await one.read(['cmdline.txt'], 9999))
  t.equal(second.readUInt32LE(fatStart + 512 + 488), first.readUInt32LE(fatStart + 512 + 488), 'the same room is free')
  const used = await putFiles(madeFat(), {
    ...system,
    'bramble-status.txt': 'Joined',
    'bramble/packages/old_1_arm64.deb': 'old',
  })
  const again = await place(t, madeCard(used))
  await again.make()
  const three = await bootOf(await readFile(again.target))
  t.same(await three.list(['bramble', 'packages']), ['bramble-agent_1_arm64.deb', 'bramble-runtime_1_arm64.deb'])
  t.notMatch(await three.list([]), ['bramble-status.txt'])
})

test('a read-only card brings the script for it, and a card made of that one without does not', async (t) => {
  const words = { ...system, 'cmdline.txt': 'root=PARTUUID=1-02 rootwait resize\n' }
  const { folder, target, make } = await place(t, madeCard(await putFiles(madeFat(), words)))
  await make({ isReadOnly: true })
  const card = await bootOf(await readFile(target))
  t.equal(String(await card.read(['bramble', 'storage'], 99)), 'read-only\n')
  t.equal(String(await card.read(['bramble', 'storage.sh'], 1e6)), storageScript)
  t.match(String(await card.read(['cmdline.txt'], 999)), /^root=PARTUUID=1-02 rootwait cgroup_enable/)
  const plain = join(folder, 'plain.img')
  await make({ source: target, target: plain })
  const other = await bootOf(await readFile(plain))
  t.same((await other.list(['bramble']))?.toSorted(), ['SHA256SUMS', 'first-boot.sh', 'packages'])
  t.match(String(await other.read(['cmdline.txt'], 999)), /^root=PARTUUID=1-02 rootwait resize cgroup_enable/)
})

test('an image that has the packages inside gets the terms of the join, and keeps its kernel and words', async (t) => {
  const files = {
    'cmdline.txt': 'console=tty0 root=PARTUUID=1-02 rw  rootwait \n',
    'config.txt': 'upstream_kernel=1\n',
    'issue.txt': 'Debian 13 (trixie) with Bramble 0.1.0\nMade by build-image.sh of Bramble\n',
    'bramble/storage': 'read-only\n',
  }
  const { folder, target, make, asked } = await place(t, madeCard(await putFiles(madeFat(), files)))
  t.match(await make({ packages: undefined }), { form: { initFormat: 'none' } })
  const card = await bootOf(await readFile(target))
  t.match(String(await card.read(['bramble.yaml'], 9999)), /controller: https:\/\/fleet.example:6443/)
  t.equal(String(await card.read(['cmdline.txt'], 999)), files['cmdline.txt'])
  t.same(await card.list(['bramble']), ['storage'], 'its root is read-only as it was built')
  await t.rejects(make({ target: join(folder, 'x.img') }), /has the packages of the agent already/)
  t.equal(asked(), 1, 'no token is made for an image that is refused')
})

test('.xz is read and written by the program xz, with the progress and the digest of the image', async (t) => {
  const { folder, source, make, progress } = await place(t)
  execFileSync('xz', ['--keep', source])
  const target = join(folder, 'card.img.xz')
  const { size, sha256, fileSize } = await make({ source: `${source}.xz`, target })
  const image = execFileSync('xz', ['--decompress', '--stdout', target], { maxBuffer: 2 ** 27 })
  t.equal(size, image.length)
  t.equal(fileSize, (await stat(target)).size)
  t.equal(sha256, execFileSync('sha256sum', { input: image }).toString().slice(0, 64))
  t.ok((await bootOf(image)).read(['bramble.yaml'], 9999))
  t.ok(progress.includes('read 100 %') && progress.includes('compressed 100 %'), String(progress))
  t.same((await readdir(folder)).toSorted(), ['card.img.xz', 'in.img', 'in.img.xz', 'packages'], 'nothing else is left')
})

test('an image that is not one is refused with the reason, no token is made for it, and nothing is left behind', async (t) => {
  const fat = await putFiles(madeFat(), system)
  const good = madeCard(fat)
  const gpt = Buffer.from(good)
  gpt[446 + 4] = 0xee
  const lying = Buffer.from(good)
  lying.writeUInt32LE(0x7fffffff, fatStart + 32)
  const loop = Buffer.from(good)
  loop.writeUInt32LE(2, fatStart + 32 * 512 + 2 * 4)
  const noRoot = Buffer.from(good)
  noRoot.writeUInt16LE(0, fatStart + fat.length + 1024 + 56)
  const small = madeCard(await putFiles(madeFat({ clusters: 100 }), system))
  const other = madeCard(await putFiles(madeFat(), { ...system, 'issue.txt': 'Ubuntu\n' }))
  for (const [image, reason] of [
    [Buffer.alloc(0), /in\.img is shorter than a sector/],
    [Buffer.alloc(10_000), /in\.img has no partition table/],
    [Buffer.from(`PK\x03\x04${'x'.repeat(9999)}`), /compressed with zip/],
    [Buffer.from([0x1f, 0x8b, ...Buffer.alloc(999)]), /compressed with gzip/],
    [gpt, /in\.img has a GPT/],
    [good.subarray(0, good.length - 1), /in\.img is cut off: it has \d+ of the \d+ bytes/],
    [lying, /The boot partition has a damaged FAT: it claims/],
    [loop, /a chain does not end/],
    [noRoot, /no ext4 in its second partition/],
    [other, /is not Raspberry Pi OS/],
    [small, /The boot partition is full/],
  ] as const) {
    const { folder, make, asked } = await place(t, image)
    await t.rejects(make(), { message: reason })
    t.equal(asked(), 0, String(reason))
    t.same((await readdir(folder)).toSorted(), ['in.img', 'packages'])
  }
})

test('an .xz that is cut off or damaged is refused with the reason of xz', async (t) => {
  const { folder, source, make } = await place(t)
  execFileSync('xz', ['--keep', '--check=crc64', source])
  const whole = await readFile(`${source}.xz`)
  const damaged = Buffer.from(whole)
  damaged.writeUInt8((whole[whole.length - 50] ?? 0) ^ 1, whole.length - 50)
  for (const [bytes, reason] of [
    [whole.subarray(0, whole.length - 10), /end of input/],
    [damaged, /corrupt/i],
    [whole.subarray(0, 300), /end of input/],
  ] as const) {
    await writeFile(`${source}.xz`, bytes)
    await t.rejects(make({ source: `${source}.xz` }), {
      message: /Cannot decompress .*in\.img\.xz/,
      cause: { message: reason },
    })
  }
  t.same((await readdir(folder)).toSorted(), ['in.img', 'in.img.xz', 'packages'])
})

test('a file that is there is kept, and the image is never written to itself', async (t) => {
  const { source, target, make } = await place(t)
  await writeFile(target, 'mine')
  await t.rejects(make(), /card\.img exists: give another name, or --replace/)
  await t.rejects(make({ target: source, isReplaced: true }), /in\.img is the image itself/)
  await t.rejects(make({ target: '/dev/null', isReplaced: true }), /\/dev\/null is not a file/)
  t.equal(String(await readFile(target)), 'mine')
  await make({ isReplaced: true })
  t.ok((await stat(target)).size > 10_000)
})

test('it stops with its signal, and leaves nothing behind', async (t) => {
  const { folder, source, make } = await place(t)
  execFileSync('xz', ['--keep', source])
  await t.rejects(make({ source: `${source}.xz` }, AbortSignal.abort()))
  t.same((await readdir(folder)).toSorted(), ['in.img', 'in.img.xz', 'packages'])
})

test('zeros of an image take no room', async (t) => {
  const { target, make } = await place(t, madeCard(await putFiles(madeFat({ clusters: 60_000 }), system), 8))
  await make()
  const { size, blocks } = await stat(target)
  t.ok(size > 30e6 && blocks * 512 < size / 4, `${blocks * 512} of ${size} bytes`)
})
