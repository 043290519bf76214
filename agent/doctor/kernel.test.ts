import { test } from 'tap'
import { type MemoryCgroupReading, memoryCgroup, memoryCgroupCheck } from '../health/memory-cgroup.ts'
import { healthFinding } from './health.ts'
import { type CommandLineFile, memoryCgroupFinding, withMemoryCgroup } from './kernel.ts'

const findingOf = (reading: MemoryCgroupReading | undefined, file: CommandLineFile | undefined) =>
  memoryCgroupFinding(healthFinding(memoryCgroupCheck, memoryCgroup(reading)), file)

test('the line for the kernel stays one line, and has the words once', async (t) => {
  const words = 'cgroup_enable=memory cgroup_memory=1'
  t.equal(withMemoryCgroup('console=tty1 rootwait\n'), `console=tty1 rootwait ${words}\n`)
  t.equal(withMemoryCgroup('console=tty1 rootwait'), `console=tty1 rootwait ${words}`, 'without an end of line')
  t.equal(withMemoryCgroup('  a  b \n\n'), `a b ${words}\n`)
  t.equal(withMemoryCgroup('a cgroup_memory=0 b'), `a b ${words}`)
  t.equal(withMemoryCgroup('a cgroup_disable=memory b'), `a b ${words}`)
  t.equal(withMemoryCgroup('a cgroup_disable=cpuset,memory'), `a cgroup_disable=cpuset ${words}`)
  t.equal(withMemoryCgroup('cgroup_memory=1 a'), 'cgroup_memory=1 a cgroup_enable=memory')
  const done = `a ${words} b\n`
  t.equal(withMemoryCgroup(done), done, 'twice is once')
  t.equal(withMemoryCgroup('a\nb\n'), undefined, 'of two lines the firmware reads one')
  t.equal(withMemoryCgroup('\n'), undefined)
})

test('memory limits that are off are put right in the file of this release, and then a restart is missing', async (t) => {
  const path = '/boot/firmware/cmdline.txt'
  const reading = { isEnabled: false, commandLine: 'a cgroup_disable=memory', file: path }
  const found = findingOf(reading, { path, content: 'a\n', mode: 0o755 })
  t.match(found, {
    verdict: 'problem',
    remedy: /cmdline\.txt, then restart/,
    fix: {
      needsRestart: true,
      steps: [
        {
          kind: 'write',
          path,
          content: 'a cgroup_enable=memory cgroup_memory=1\n',
          instead: 'a\n',
          mode: 0o755,
          backup: `${path}.before-bramble`,
        },
      ],
    },
  })
  const after = findingOf(reading, { path, content: 'a cgroup_enable=memory cgroup_memory=1\n', mode: 0o755 })
  t.match(after, { verdict: 'warning', remedy: /^Restart the machine/, fix: undefined })
  t.match(findingOf({ ...reading, file: '/etc/default/grub' }, undefined), {
    verdict: 'problem',
    fix: undefined,
  })
  t.match(findingOf(reading, { path, content: 'a\nb\n', mode: 0o755 }), {
    verdict: 'problem',
    fix: undefined,
  })
  t.equal(findingOf({ ...reading, isEnabled: true }, undefined).verdict, 'ok')
  t.equal(findingOf(undefined, undefined).verdict, 'unknown')
})
