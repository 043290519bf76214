/** What each verb does with objects: one road in, a file for each kind of errand. */

import { changeObject } from './handlers/changing.ts'
import { createObject } from './handlers/creating.ts'
import { deleteCollection, deleteObject } from './handlers/deleting.ts'
import { getObject, listObjects, watchObjects } from './handlers/reading.ts'
import type { ResourceNeeds, ResourceRequest } from './handlers/resource-request.ts'
import type { Answer } from './wire/answers.ts'

/** Throws the ApiError that the client shall be told. */
export async function resourceAnswer(request: ResourceRequest, needs: ResourceNeeds): Promise<Answer> {
  switch (request.route.verb) {
    case 'get':
      return getObject(request, needs)
    case 'list':
      return listObjects(request, needs)
    case 'watch':
      return watchObjects(request, needs)
    case 'create':
      return createObject(request, needs)
    case 'update':
    case 'patch':
      return changeObject(request, needs)
    case 'delete':
      return deleteObject(request, needs)
    case 'deletecollection':
      return deleteCollection(request, needs)
  }
}
