2
éléphant2dog2
éléphant2
éléphant2
éléphantBy