import { test } from 'tap'
import { nodeNameFrom, nodeNameProblem } from './node-name.ts'

test('a node is called as its host is, in lower case', async (t) => {
  t.equal(nodeNameFrom(' Pi-Kitchen\n'), 'pi-kitchen')
})

test('a name that is no DNS subdomain is refused with what is wrong', async (t) => {
  for (const good of ['pi', 'pi-1', '1', 'pi.kitchen.example', 'a'.repeat(253)])
    t.equal(nodeNameProblem(good), undefined, good)
  for (const bad of ['Pi', 'pi_1', '-pi', 'pi-', 'pi..x', '.pi', 'pi/x', 'pi\n', 'pï', '+', '#'])
    t.match(nodeNameProblem(bad), /only a-z/, JSON.stringify(bad))
  t.match(nodeNameProblem(''), /empty/)
  t.match(nodeNameProblem('a'.repeat(254)), /253/)
})
